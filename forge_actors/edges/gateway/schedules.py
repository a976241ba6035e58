"""The routes of schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.domain.schedule_views import (
    AppliedSchedules,
    NextTime,
    OccurrenceView,
    ScheduleRequest,
    ScheduleView,
)
from forge_actors.domain.schedules import MAX_SCHEDULES
from forge_actors.domain.trust import SOURCE
from forge_actors.edges.gateway.callers import caller
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.paging import PAGED, page
from forge_actors.edges.gateway.parameters import number
from forge_actors.edges.gateway.query import Nothing, decode
from forge_actors.edges.gateway.route import Route

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


class ScheduleApplying(Struct, forbid_unknown_fields=True):
    """The schedules of a file, which `source` names."""

    source: str
    schedules: list[ScheduleRequest]
    dry_run: bool = False


class Schedules(Struct):
    """By name. `next` is the value of `after` for those behind them, or null."""

    schedules: list[ScheduleView]
    next: str | None = None


class Times(Struct):
    """The next one first."""

    times: list[NextTime]


class Occurrences(Struct):
    """The newest first."""

    occurrences: list[OccurrenceView]


async def listed(call: Call) -> Answer:
    views = await call.control.schedules()
    found, behind = page(views, lambda view: view.name, call.query)
    return json_response(Schedules(found, behind))


async def add(call: Call) -> Answer:
    request = decode(call.request.body, ScheduleRequest)
    _check_authority(call, [request])
    return json_response(await call.control.add_schedule(request), status=201)


async def show(call: Call) -> Answer:
    return json_response(await call.control.schedule(call.parts[0]))


async def edit(call: Call) -> Answer:
    wanted = decode(call.request.body, Editing)
    if wanted.schedule.name != call.parts[0]:
        raise InvalidInput("schedule.name", "is not the one of the path")
    _check_authority(call, [wanted.schedule])
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
    return json_response(Times(times))


async def occurrences(call: Call) -> Answer:
    limit = call.query.number("limit", 50, least=1, most=MAX_TOLD)
    told = await call.control.occurrences(call.parts[0], limit)
    return json_response(Occurrences(told))


async def apply(call: Call) -> Answer:
    wanted = decode(call.request.body, ScheduleApplying)
    if not wanted.source or wanted.source.startswith(SOURCE):
        raise InvalidInput("source", "is no name of a file")
    if len(wanted.schedules) > MAX_SCHEDULES:
        raise InvalidInput("schedules", f"has more than {MAX_SCHEDULES} schedules")
    _check_authority(call, wanted.schedules)
    applied = await call.control.apply_schedules(
        wanted.schedules, wanted.source, dry_run=wanted.dry_run
    )
    return json_response(applied)


def _check_authority(call: Call, schedules: list[ScheduleRequest]) -> None:
    """A job may make schedules. What their jobs may do to the outside says a person,
    and which of them wakes a controller.

    Raises:
        Refused: a job says it.
    """
    job = caller(call.request)
    if job is not None and any(each.job.get("authorised") for each in schedules):
        raise Refused(
            f"job {job} cannot authorise what a schedule may do to the outside; a"
            " person can"
        )
    if job is not None and any(each.wake is not None for each in schedules):
        raise Refused(
            f"job {job} cannot have a schedule wake a controller; a person can"
        )


_COUNT = number("count", "So many times.", least=1, most=MAX_TOLD)
_LIMIT = number("limit", "At most so many.", least=1, most=MAX_TOLD)

ROUTES = (
    Route(
        "GET",
        "/v1/schedules",
        listed,
        PAGED,
        says="All schedules.",
        gives=Schedules,
        errors=(),
    ),
    Route(
        "POST",
        "/v1/schedules",
        add,
        says="Add a schedule.",
        takes=ScheduleRequest,
        gives=ScheduleView,
        status=201,
    ),
    Route(
        "POST",
        "/v1/schedules/apply",
        apply,
        says="Have the schedules of a file be as it says.",
        takes=ScheduleApplying,
        gives=AppliedSchedules,
    ),
    Route(
        "GET",
        "/v1/schedules/{name}",
        show,
        says="One schedule.",
        gives=ScheduleView,
        errors=(404,),
    ),
    Route(
        "DELETE",
        "/v1/schedules/{name}",
        remove,
        says="Forget a schedule; its jobs stay.",
        gives=ScheduleView,
    ),
    Route(
        "POST",
        "/v1/schedules/{name}/edit",
        edit,
        says="Change a schedule.",
        takes=Editing,
        gives=ScheduleView,
    ),
    Route(
        "POST",
        "/v1/schedules/{name}/pause",
        pause,
        takes=Nothing,
        says="Let a schedule run no more.",
        gives=ScheduleView,
    ),
    Route(
        "POST",
        "/v1/schedules/{name}/resume",
        resume,
        takes=Nothing,
        says="Let a schedule run again, from now on.",
        gives=ScheduleView,
    ),
    Route(
        "POST",
        "/v1/schedules/{name}/run",
        run,
        says="Have a schedule run now.",
        takes=Running,
        gives=OccurrenceView,
    ),
    Route(
        "GET",
        "/v1/schedules/{name}/next",
        next_times,
        (_COUNT,),
        says="When a schedule comes next.",
        gives=Times,
        errors=(404,),
    ),
    Route(
        "GET",
        "/v1/schedules/{name}/occurrences",
        occurrences,
        (_LIMIT,),
        says="What became of the times of a schedule.",
        gives=Occurrences,
        errors=(404,),
    ),
)
