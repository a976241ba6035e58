"""What the maintenance actor is given by the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.fence import Claim
from forge_actors.domain.maintenance import Policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.ports import CleanUp, Clock, KeptStore


class Context(Struct, frozen=True):
    """What the maintenance actor is given by the runtime."""

    home: str
    store: KeptStore
    clock: Clock
    clean_up: CleanUp
    policy: Callable[[], Policy]
    #: As whom the store is written to.
    claim: Claim | None
    #: Whether any job waits or runs.
    is_busy: Callable[[], bool]
    #: Told after each run, and when it is given up: what is wrong with the clean-up, if
    #: it fails again and again.
    tell: Callable[[str | None], None] = lambda _: None
