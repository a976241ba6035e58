"""The routes of the service as a whole: its state, waiting for one, and its drain."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import trio
from msgspec import Struct

from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.requests import JobQuery
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.query import Nothing, decode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.control import Control
    from forge_actors.edges.gateway.call import Call
    from forge_actors.edges.gateway.messages import Request, Response

#: What a request for the state can be held for.
WAITS: dict[str, Callable[[Control], Awaitable[None]]] = {
    "ready": lambda control: control.wait_ready(),
    "idle": lambda control: control.wait_idle(),
}
#: Jobs that still run are named up to so many.
NAMED = 100


class Draining(Struct, forbid_unknown_fields=True):
    """`wait` holds the request until nothing runs, for `timeout` at most."""

    wait: bool = True
    timeout: float | str | None = None


class Stopping(Struct, forbid_unknown_fields=True):
    """`jobs`: end what runs too."""

    jobs: bool = False


async def status(call: Call) -> Response:
    call.query.choices("wait", tuple(WAITS))
    name, seconds = call.query.one("wait"), _seconds(call.query.one("timeout"))
    if name is None:
        return json_response(await call.control.status())
    with trio.move_on_after(seconds) as limit:
        await WAITS[name](call.control)
    state = await call.control.status()
    return json_response({**state, "timed_out": limit.cancelled_caught})


async def ready(control: Control, _: Request) -> Response:
    """Whether it is ready and no more, for those who are not let in."""
    is_ready = (await control.status())["ready"] is True
    return json_response({"ready": is_ready}, status=200 if is_ready else 503)


async def show_settings(call: Call) -> Response:
    return json_response({"settings": await call.control.settings()})


async def reload_settings(call: Call) -> Response:
    return json_response({"changed": await call.control.reload_settings()})


async def drain(call: Call) -> Response:
    wanted = decode(call.request.body, Draining)
    seconds = _seconds(wanted.timeout)
    await call.control.drain()
    with trio.move_on_after(seconds if wanted.wait else 0) as limit:
        await call.control.wait_drained()
    query = JobQuery(state=["dispatched", "running"], limit=NAMED)
    running = await call.control.jobs(query)
    return json_response({"running": running, "timed_out": limit.cancelled_caught})


async def stop(call: Call) -> Response:
    wanted = decode(call.request.body, Stopping)
    running = call.control.request_stop(jobs=wanted.jobs)
    answer = {"stopping": True, "running": running, "jobs": wanted.jobs}
    return json_response(answer, status=202)


async def check_release(call: Call) -> Response:
    decode(call.request.body, Nothing)
    return json_response(call.control.check_release())


async def undrain(call: Call) -> Response:
    await call.control.undrain()
    return json_response({"draining": False})


def _seconds(timeout: float | str | None) -> float:
    return math.inf if timeout is None else parse_duration(timeout, field="timeout")
