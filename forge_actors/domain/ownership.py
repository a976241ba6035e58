"""Who owns a home: one runtime at a time, each with a larger epoch than the last."""

from __future__ import annotations

from msgspec import Struct

from forge_actors.domain.launch import ProcessIdentity


class Owner(Struct, frozen=True):
    """The runtime that may write in a home.

    `instance` is new for each start, `release` is what it runs, `acquired_at` seconds
    of the wall clock.
    """

    epoch: int
    instance: str
    process: ProcessIdentity
    release: str
    acquired_at: float
