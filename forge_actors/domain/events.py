"""Events: the durable, ordered record of every move, with its reason."""

from __future__ import annotations

from msgspec import Struct


class Event(Struct, frozen=True, omit_defaults=True, gc=False):
    """One thing that happened. `seq` is given by the store and only grows."""

    kind: str
    at: float
    repo: str | None = None
    job: str | None = None
    data: dict[str, object] = {}
    seq: int = 0
