"""The routes of the runs of EPICs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import trio
from msgspec import Struct

from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.epic.runs import EpicRequest, EpicRunView
from forge_actors.domain.errors import NotFound
from forge_actors.domain.picture.epic import picture
from forge_actors.edges.gateway.callers import origin_of
from forge_actors.edges.gateway.messages import Response, json_response
from forge_actors.edges.gateway.parameters import flag, number, text
from forge_actors.edges.gateway.query import decode
from forge_actors.edges.gateway.route import Route

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call

SVG = "image/svg+xml"
#: For a picture that is opened by itself.
SEALED = "default-src 'none'; style-src 'unsafe-inline'"
#: Runs that one answer tells of.
MAX_TOLD = 500


class EpicStop(Struct, forbid_unknown_fields=True):
    """`drain`: its workers come to their next boundary; `now`: they are interrupted."""

    mode: Literal["drain", "now"] = "drain"


class EpicWait(Struct, forbid_unknown_fields=True):
    timeout: str | float | None = None


class EpicWaited(Struct):
    """`timed_out`: it has not ended."""

    epic: EpicRunView
    timed_out: bool


class EpicRuns(Struct):
    """The newest first, without their issues. `next` is the value of `before` for those
    behind them, or null."""

    epics: list[EpicRunView]
    next: str | None = None


async def start(call: Call) -> Answer:
    wanted = decode(call.request.body, EpicRequest)
    origin = origin_of(call.request, "cli")
    view = await call.control.run_epic(wanted, origin=origin)
    return json_response(view, status=201)


async def listed(call: Call) -> Answer:
    limit = call.query.number("limit", 50, least=1, most=MAX_TOLD)
    active, before = call.query.flag("active"), call.query.one("before")
    views = await call.control.epics(active=active or None, before=before, limit=limit)
    behind = views[-1].id if len(views) == limit else None
    return json_response(EpicRuns(views, behind))


async def show(call: Call) -> Answer:
    return json_response(await call.control.epic(call.parts[0]))


async def graph(call: Call) -> Answer:
    """A picture; `seen` only makes its address another one."""
    run = await call.control.epic(call.parts[0])
    if run.view is None:
        raise NotFound(f"the graph of run {run.id} was not read yet")
    headers = {"content-security-policy": SEALED}
    return Response(200, picture(run.view).encode(), SVG, headers)


async def stop(call: Call) -> Answer:
    wanted = decode(call.request.body or b"{}", EpicStop)
    return json_response(await call.control.stop_epic(call.parts[0], wanted.mode))


async def wait(call: Call) -> Answer:
    wanted, name = decode(call.request.body or b"{}", EpicWait), call.parts[0]
    seconds = float("inf")
    if wanted.timeout is not None:
        seconds = parse_duration(wanted.timeout, field="timeout")
    with trio.move_on_after(seconds) as limit:
        await call.control.wait_epic(name)
    view = await call.control.epic(name)
    return json_response(EpicWaited(view, timed_out=limit.cancelled_caught))


_LIMIT = number("limit", "At most so many.", least=1, most=MAX_TOLD)
_ACTIVE = flag("active", "Only those that have not ended.")
_BEFORE = text("before", "Only those that are older than this id.")
_SEEN = text("seen", "Anything: for another address than the last picture had.")

ROUTES = (
    Route(
        "GET",
        "/v1/epics",
        listed,
        (_LIMIT, _ACTIVE, _BEFORE),
        says="The runs of EPICs.",
        gives=EpicRuns,
        errors=(),
    ),
    Route(
        "POST",
        "/v1/epics",
        start,
        says="Begin to work through an EPIC.",
        takes=EpicRequest,
        gives=EpicRunView,
        status=201,
    ),
    Route(
        "GET",
        "/v1/epics/{epic}",
        show,
        says="One run of an EPIC and its issues.",
        gives=EpicRunView,
        tagged=True,
    ),
    Route(
        "GET",
        "/v1/epics/{epic}/graph.svg",
        graph,
        (_SEEN,),
        says="The issues of an EPIC as a picture.",
        media=SVG,
    ),
    Route(
        "POST",
        "/v1/epics/{epic}/stop",
        stop,
        says="Ask a run of an EPIC to end.",
        takes=EpicStop,
        gives=EpicRunView,
    ),
    Route(
        "POST",
        "/v1/epics/{epic}/wait",
        wait,
        says="Wait until a run of an EPIC has ended.",
        takes=EpicWait,
        gives=EpicWaited,
        holds=True,
    ),
)
