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


def encoded(schedule: Schedule) -> bytes:
    return msgspec.json.encode(schedule)


def loaded(key: str, name: str, body: bytes) -> tuple[Schedule, str | None]:
    """A schedule that was stored, and why it is set aside if it cannot be used."""
    try:
        schedule = _decoded(body)
        if isinstance(schedule.definition.trigger, Cron):
            checked_zone(schedule.definition.trigger.timezone)
        schedule = _by_id(schedule)
    except (
        msgspec.MsgspecError,
        InvalidInput,
        LookupError,
        TypeError,
        RecursionError,
    ) as error:
        problem = f"what is stored of it cannot be used: {error}"
        nothing = JobRequest(repo="", argv=[])
        empty = Definition(name, "", Manual(), nothing)
        aside = Schedule(key, 0, empty, Progress(0.0), "quarantined", problem)
        return aside, problem
    return schedule, None


def _decoded(body: bytes) -> Schedule:
    try:
        return _decoder.decode(body)
    except msgspec.ValidationError:
        # JSON has no infinity: a window that waits for the end of a job has null.
        stored = msgspec.json.decode(body)
        for entry in stored["progress"]["pending"]:
            if entry["moment"] is None:
                entry["moment"] = math.inf
        return msgspec.convert(stored, Schedule)


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
