"""The routes of controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.controller_views import (
    ControllerRequest,
    ControllerView,
    WakeView,
)
from forge_actors.domain.controllers import MAX_WAKES, Disposition
from forge_actors.domain.errors import Refused
from forge_actors.edges.gateway.callers import caller
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.paging import PAGED, page
from forge_actors.edges.gateway.parameters import number
from forge_actors.edges.gateway.query import Nothing, decode
from forge_actors.edges.gateway.route import Route

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call


class Waking(Struct, forbid_unknown_fields=True):
    """The same `request_id` again wakes it no second time."""

    request_id: str | None = None


class Telling(Struct, forbid_unknown_fields=True):
    """How a turn ends. `state`: the same words again are the same state."""

    disposition: Disposition
    note: str = ""
    state: str = ""


class Controllers(Struct):
    """By name. `next` is the value of `after` for those behind them, or null."""

    controllers: list[ControllerView]
    next: str | None = None


class Wakes(Struct):
    """The newest first."""

    wakes: list[WakeView]


async def listed(call: Call) -> Answer:
    views = await call.control.list_controllers()
    found, behind = page(views, lambda view: view.name, call.query)
    return json_response(Controllers(found, behind))


async def add(call: Call) -> Answer:
    request = decode(call.request.body, ControllerRequest)
    job = caller(call.request)
    view = await call.control.add_controller(request, caller=job)
    return json_response(view, status=201)


async def show(call: Call) -> Answer:
    return json_response(await call.control.controller(call.parts[0]))


async def wakes(call: Call) -> Answer:
    limit = call.query.number("limit", 50, least=1, most=MAX_WAKES)
    return json_response(
        Wakes(await call.control.controller_wakes(call.parts[0], limit))
    )


async def wake(call: Call) -> Answer:
    _check_person(call, "wake a controller")
    wanted = decode(call.request.body or b"{}", Waking)
    told = await call.control.wake_controller(call.parts[0], wanted.request_id)
    return json_response(told)


async def pause(call: Call) -> Answer:
    return json_response(await call.control.pause_controller(call.parts[0]))


async def resume(call: Call) -> Answer:
    _check_person(call, "give a controller more turns")
    return json_response(await call.control.resume_controller(call.parts[0]))


async def remove(call: Call) -> Answer:
    _check_person(call, "remove a controller")
    return json_response(await call.control.remove_controller(call.parts[0]))


async def tell(call: Call) -> Answer:
    return await _told(call, call.parts[0])


async def tell_own(call: Call) -> Answer:
    return await _told(call, None)


async def _told(call: Call, name: str | None) -> Answer:
    wanted, job = decode(call.request.body, Telling), caller(call.request)
    view = await call.control.tell_controller(
        name, wanted.disposition, note=wanted.note, state=wanted.state, caller=job
    )
    return json_response(view)


def _check_person(call: Call, what: str) -> None:
    """
    Raises:
        Refused: a job asks.
    """
    job = caller(call.request)
    if job is not None:
        raise Refused(f"job {job} cannot {what}; a person can")


_LIMIT = number("limit", "At most so many.", least=1, most=MAX_WAKES)

ROUTES = (
    Route(
        "GET",
        "/v1/controllers",
        listed,
        PAGED,
        says="All controllers.",
        gives=Controllers,
        errors=(),
    ),
    Route(
        "POST",
        "/v1/controllers",
        add,
        says="Add a controller.",
        takes=ControllerRequest,
        gives=ControllerView,
        status=201,
    ),
    Route(
        "POST",
        "/v1/controllers/tell",
        tell_own,
        says="Say how the turn of the job that asks ends.",
        takes=Telling,
        gives=ControllerView,
    ),
    Route(
        "GET",
        "/v1/controllers/{name}",
        show,
        says="One controller.",
        gives=ControllerView,
        errors=(404,),
    ),
    Route(
        "DELETE",
        "/v1/controllers/{name}",
        remove,
        says="Forget a controller; its jobs stay.",
        gives=ControllerView,
    ),
    Route(
        "GET",
        "/v1/controllers/{name}/wakes",
        wakes,
        (_LIMIT,),
        says="What became of what was to wake a controller.",
        gives=Wakes,
        errors=(404,),
    ),
    Route(
        "POST",
        "/v1/controllers/{name}/wake",
        wake,
        says="Have a controller go on now.",
        takes=Waking,
        gives=WakeView,
    ),
    Route(
        "POST",
        "/v1/controllers/{name}/pause",
        pause,
        takes=Nothing,
        says="Let nothing wake a controller.",
        gives=ControllerView,
    ),
    Route(
        "POST",
        "/v1/controllers/{name}/resume",
        resume,
        takes=Nothing,
        says="Let a controller go on, with budgets that begin anew.",
        gives=ControllerView,
    ),
    Route(
        "POST",
        "/v1/controllers/{name}/tell",
        tell,
        says="Say how the turn of a controller ends.",
        takes=Telling,
        gives=ControllerView,
    ),
)
