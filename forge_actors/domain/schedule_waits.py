"""Windows of schedules that wait for something, and for no moment."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import structs

if TYPE_CHECKING:
    from forge_actors.domain.schedules import Schedule


def woken(schedule: Schedule, wall: float) -> Schedule:
    """A schedule whose windows that wait for something are looked at now."""
    progress = schedule.progress
    if all(entry.moment < math.inf for entry in progress.pending):
        return schedule
    pending = tuple(
        structs.replace(entry, moment=wall) if entry.moment == math.inf else entry
        for entry in progress.pending
    )
    progress = structs.replace(progress, pending=pending)
    return structs.replace(schedule, progress=progress)
