"""Schedules as they are stored, and what the history says of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.events import Event
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.schedules import Definition, Progress, Schedule
from forge_actors.domain.triggers import Cron, Manual, checked_zone

if TYPE_CHECKING:
    from forge_actors.domain.schedules import Occurrence

_decoder = msgspec.json.Decoder(Schedule)
#: JSON has no infinite number: of a window that waits for something, and no moment,
#: nothing is stored there. No text can hold these bytes, as its quotes are escaped.
_NO_MOMENT, _FAR = b'"moment":null', 1e18


def encoded(schedule: Schedule) -> bytes:
    return msgspec.json.encode(schedule)


def loaded(key: str, name: str, body: bytes) -> tuple[Schedule, str | None]:
    """A schedule that was stored, and why it is set aside if it cannot be used."""
    try:
        far = b'"moment":%.0f.0' % _FAR
        schedule = _endless(_decoder.decode(body.replace(_NO_MOMENT, far)))
        if isinstance(schedule.definition.trigger, Cron):
            checked_zone(schedule.definition.trigger.timezone)
        schedule = _by_id(schedule)
    except (msgspec.MsgspecError, InvalidInput) as error:
        problem = f"what is stored of it cannot be used: {error}"
        nothing = JobRequest(repo="", argv=[])
        empty = Definition(name, "", Manual(), nothing)
        aside = Schedule(key, 0, empty, Progress(0.0), "quarantined", problem)
        return aside, problem
    return schedule, None


def _endless(schedule: Schedule) -> Schedule:
    """The same; what was stored without a moment has an infinite one."""
    progress = schedule.progress
    if all(entry.moment < _FAR for entry in progress.pending):
        return schedule
    pending = tuple(
        structs.replace(entry, moment=math.inf) if entry.moment >= _FAR else entry
        for entry in progress.pending
    )
    progress = structs.replace(progress, pending=pending)
    return structs.replace(schedule, progress=progress)


def _by_id(schedule: Schedule) -> Schedule:
    """The same with its repository by id: earlier releases stored a name, which may be
    that of another one by now."""
    definition = schedule.definition
    if "/" in definition.request.repo:
        return schedule
    request = structs.replace(definition.request, repo=definition.repo)
    return structs.replace(
        schedule, definition=structs.replace(definition, request=request)
    )


def schedule_event(
    kind: str, schedule: Schedule, now: float, data: dict[str, object]
) -> Event:
    """Something was done to a schedule."""
    about = {"schedule": schedule.name, "revision": schedule.revision, **data}
    return Event(kind, now, schedule.definition.repo or None, data=about)


def window_event(schedule: Schedule, occurrence: Occurrence, now: float) -> Event:
    """A window was decided for good."""
    data: dict[str, object] = {
        "schedule": schedule.name,
        "decision": occurrence.decision,
        "reason": occurrence.reason,
        "due": occurrence.due,
        "occurrence": occurrence.id,
    }
    if occurrence.count != 1:
        data["count"] = occurrence.count
    repo = schedule.definition.repo or None
    return Event("schedule_decided", now, repo, occurrence.job, data)
