"""Schedules that wake a controller in place of submitting a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.continuation import NotNow, NotWoken
from forge_actors.domain.errors import (
    ActorStopped,
    Refused,
    StoreFailed,
    Unavailable,
)
from forge_actors.domain.scheduling import Ruling, ended, submitted

if TYPE_CHECKING:
    from forge_actors.domain.errors import ForgeError
    from forge_actors.domain.schedules import Occurrence, Pending, Policies, Schedule

#: Seconds until the next try of a window that could not be submitted for now.
TRY_AGAIN = 30.0
_FOR_NOW = (StoreFailed, Unavailable, Refused, ActorStopped)

#: What no schedule that wakes a controller may pass, whatever it says.
MOST_FAILURES = 3
LEAST_COOLDOWN = LEAST_BACKOFF = 600.0
MOST_BUDGET = 3600.0
#: Seconds of that for a turn whose end nobody tells.
UNTOLD = 60.0


def cautious(policies: Policies) -> Policies:
    """The same within those bounds."""
    budget = policies.daily_budget or MOST_BUDGET
    backoff = max(policies.backoff, LEAST_BACKOFF)
    return structs.replace(
        policies,
        max_failures=min(policies.max_failures or MOST_FAILURES, MOST_FAILURES),
        cooldown=max(policies.cooldown, LEAST_COOLDOWN),
        daily_budget=min(budget, MOST_BUDGET),
        backoff=backoff,
        max_backoff=max(policies.max_backoff, backoff),
    )


def refusal(error: ForgeError, wall: float, *, wakes: bool) -> Ruling:
    """What becomes of a window whose job was refused, or that woke no controller."""
    what = "its controller was not woken" if wakes else "its job was refused"
    why = f"{what}: {error}"
    match error:
        case NotWoken():
            return Ruling("drop", why, "failed" if error.failed else "stopped")
        case NotNow():
            return Ruling("defer", why, later=error.later)
        case _ if isinstance(error, _FOR_NOW):
            return Ruling("defer", why, later=wall + TRY_AGAIN)
        case _:
            return Ruling("drop", why, "failed")


def woken(
    schedule: Schedule, entry: Pending, reason: str, wall: float
) -> tuple[Schedule, Occurrence]:
    """A schedule one of whose windows has woken a session that has no job."""
    schedule, told = submitted(schedule, entry, reason, "", wall)
    schedule = ended(schedule, "", wall, good=True, ran=UNTOLD)
    return schedule, structs.replace(told, job=None)
