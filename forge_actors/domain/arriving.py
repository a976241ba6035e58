"""Arriving: what becomes of the windows of a schedule when they are seen to be due.

Those that are on time wait for their ruling; of late ones those that the policy lets
run. Older ones make room for newer ones of a policy that runs one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.schedules import (
    GRACE,
    MAX_CATCH_UP,
    Decision,
    Occurrence,
    Pending,
    Schedule,
    jitter_of,
    occurrence_id,
)
from forge_actors.domain.triggers import of_issues

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.triggers import Window

#: Seconds over which windows that are caught up are spread.
SPREAD = 60.0
STOOD_FOR = "others of its schedule, which came later, stand for it"


def at_most(schedule: Schedule) -> int:
    """How many of its windows may wait for their ruling at a time."""
    policies = schedule.definition.policies
    if of_issues(schedule.definition.trigger):
        return MAX_CATCH_UP
    return policies.catch_up_most if policies.misfire == "all" else 1


def arrived(
    schedule: Schedule, windows: Sequence[Window], wall: float
) -> tuple[Schedule, list[Occurrence]]:
    """Take in windows, oldest first; what is decided about them already."""
    policies = schedule.definition.policies
    done: list[Occurrence] = []
    pending = list(schedule.progress.pending)
    for window in windows:
        late = wall - window.due
        moment = window.due + jitter_of(schedule.id, window.key, policies.jitter)
        entry = Pending(
            window.key, window.due, moment, cause=window.cause, env=window.env
        )
        if late > policies.catch_up:
            reason = f"it is {ago(late)} late, which is more than catch_up"
        elif late > GRACE and policies.misfire == "skip":
            reason = f"it is {ago(late)} late, and misfire is skip"
        else:
            if late > GRACE:
                # After an outage all schedules catch up: not in the same second.
                spread = jitter_of(schedule.id, window.key, SPREAD)
                entry = structs.replace(entry, moment=max(moment, wall + spread))
            pending.append(entry)
            continue
        done.append(recorded(schedule, entry, wall, "missed", reason))
    most = at_most(schedule)
    asked = [entry for entry in pending if entry.asked]
    own = [entry for entry in pending if not entry.asked]
    for entry in own[:-most]:
        reason = "a later window of its schedule stands for it"
        done.append(recorded(schedule, entry, wall, "merged", reason))
    progress = structs.replace(schedule.progress, pending=(*asked, *own[-most:]))
    return structs.replace(schedule, progress=progress), done


def without_chance(
    schedule: Schedule, first: Window, since: float, count: int, wall: float
) -> Occurrence:
    """The record of windows that came before the first that has a chance."""
    entry = Pending(f"before-{first.key}", since, wall)
    told = recorded(schedule, entry, wall, "missed", STOOD_FOR)
    return structs.replace(told, count=max(1, count))


def signalled(
    schedule: Schedule,
    windows: Sequence[Window],
    wall: float,
    *,
    seen: str | None,
    earlier: int = 0,
    blind: str = "",
) -> tuple[Schedule, list[Occurrence]]:
    """Take in what came to pass, and how far that was seen; `earlier` windows are
    missed, as too many came at once."""
    # The clock may have been set back since.
    windows = [structs.replace(each, due=min(each.due, wall)) for each in windows]
    number = schedule.progress.number + len(windows) + earlier
    progress = structs.replace(schedule.progress, seen=seen, blind=blind, number=number)
    schedule = structs.replace(schedule, progress=progress)
    told: list[Occurrence] = []
    if earlier and windows:
        first = windows[0]
        told.append(without_chance(schedule, first, first.due, earlier, wall))
    schedule, more = arrived(schedule, windows, wall)
    return schedule, told + more


def recorded(
    schedule: Schedule, entry: Pending, wall: float, decision: Decision, reason: str
) -> Occurrence:
    """What is to be kept of a window."""
    of = occurrence_id(schedule.id, entry.key)
    return Occurrence(of, schedule.id, entry.key, entry.due, wall, decision, reason)


def ago(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"
