"""The routes of schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.schedule_views import ScheduleRequest
from forge_actors.domain.schedules import MAX_SCHEDULES
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.query import decode

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call

#: Windows and times that one answer tells of.
MAX_TOLD = 500


class Editing(Struct, forbid_unknown_fields=True):
    """`revision`: what is changed has this one, or nothing is changed."""

    schedule: ScheduleRequest
    revision: int | None = None


class Running(Struct, forbid_unknown_fields=True):
    """The same `request_id` again runs nothing more."""

    request_id: str | None = None


class Applying(Struct, forbid_unknown_fields=True):
    """The schedules of a file, which `source` names."""

    source: str
    schedules: list[ScheduleRequest]
    dry_run: bool = False


async def listed(call: Call) -> Answer:
    return json_response({"schedules": await call.control.schedules()})


async def add(call: Call) -> Answer:
    request = decode(call.request.body, ScheduleRequest)
    return json_response(await call.control.add_schedule(request), status=201)


async def show(call: Call) -> Answer:
    return json_response(await call.control.schedule(call.parts[0]))


async def edit(call: Call) -> Answer:
    wanted = decode(call.request.body, Editing)
    if wanted.schedule.name != call.parts[0]:
        raise InvalidInput("schedule.name", "is not the one of the path")
    view = await call.control.edit_schedule(wanted.schedule, wanted.revision)
    return json_response(view)


async def pause(call: Call) -> Answer:
    return json_response(await call.control.pause_schedule(call.parts[0]))


async def resume(call: Call) -> Answer:
    return json_response(await call.control.resume_schedule(call.parts[0]))


async def remove(call: Call) -> Answer:
    return json_response(await call.control.remove_schedule(call.parts[0]))


async def run(call: Call) -> Answer:
    wanted = decode(call.request.body or b"{}", Running)
    name = call.parts[0]
    return json_response(await call.control.run_schedule(name, wanted.request_id))


async def next_times(call: Call) -> Answer:
    count = call.query.number("count", 10, least=1, most=MAX_TOLD)
    times = await call.control.next_times(call.parts[0], count)
    return json_response({"times": times})


async def occurrences(call: Call) -> Answer:
    limit = call.query.number("limit", 50, least=1, most=MAX_TOLD)
    told = await call.control.occurrences(call.parts[0], limit)
    return json_response({"occurrences": told})


async def apply(call: Call) -> Answer:
    wanted = decode(call.request.body, Applying)
    if not wanted.source:
        raise InvalidInput("source", "is empty")
    if len(wanted.schedules) > MAX_SCHEDULES:
        raise InvalidInput("schedules", f"has more than {MAX_SCHEDULES} schedules")
    applied = await call.control.apply_schedules(
        wanted.schedules, wanted.source, dry_run=wanted.dry_run
    )
    return json_response(applied)
