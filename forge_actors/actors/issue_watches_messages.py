"""What the watch of issues is told and given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.schedules import Schedule

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.actors.schedules_messages import Signalled
    from forge_actors.domain.github.issues import GitHub
    from forge_actors.domain.ports import Clock


class Follow(Struct, frozen=True):
    """A schedule waits for issues."""

    schedule: Schedule


class Leave(Struct, frozen=True):
    schedule: str


class Asked(Struct, frozen=True):
    """GitHub was asked for one schedule, in its `number`th turn."""

    schedule: str
    turn: int
    #: Seconds until it is asked again.
    wait: float
    #: How many questions failed in a row.
    failures: int = 0
    #: Where it was asked from, and what marked the answer.
    mark: tuple[str, str] | None = None


class Due(Struct, frozen=True):
    """It is time to ask for one."""


Message = Follow | Leave | Asked | Due


class Context(Struct, frozen=True):
    """What the actor is given."""

    clock: Clock
    #: The reader; raises a ForgeError where there cannot be one.
    github: Callable[[], GitHub]
    #: A schedule as it is now, if it is there.
    schedule: Callable[[str], Awaitable[Schedule | None]]
    #: Tells the schedules.
    tell: Callable[[Signalled], object]
    #: Issues that get a job after one question.
    at_once: Callable[[], int]
