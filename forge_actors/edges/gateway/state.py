"""The routes of the service as a whole: its state, waiting for one, and its drain."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import trio
from msgspec import Struct

from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.jobs import JobView
from forge_actors.domain.releases import ReleaseCheck
from forge_actors.domain.requests import JobQuery
from forge_actors.domain.settings import SettingChange, SettingView
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.query import Nothing, decode
from forge_actors.edges.gateway.route import Route

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


class SettingsInForce(Struct):
    """Every setting, with where it comes from."""

    settings: list[SettingView]


class Reloaded(Struct):
    """What is different now, or will be after the next start."""

    changed: list[SettingChange]


class Drained(Struct):
    """What still runs; `timed_out`: the wait for it to end did not last."""

    running: list[JobView]
    timed_out: bool


class StopBegun(Struct):
    """How many jobs run, and whether they are ended too."""

    stopping: bool
    running: int
    jobs: bool


class DrainState(Struct):
    draining: bool


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
    return json_response(SettingsInForce(await call.control.settings()))


async def reload_settings(call: Call) -> Response:
    return json_response(Reloaded(await call.control.reload_settings()))


async def drain(call: Call) -> Response:
    wanted = decode(call.request.body, Draining)
    seconds = _seconds(wanted.timeout)
    await call.control.drain()
    with trio.move_on_after(seconds if wanted.wait else 0) as limit:
        await call.control.wait_drained()
    query = JobQuery(state=["dispatched", "running"], limit=NAMED)
    running = await call.control.jobs(query)
    return json_response(Drained(running, timed_out=limit.cancelled_caught))


async def stop(call: Call) -> Response:
    wanted = decode(call.request.body, Stopping)
    running = call.control.request_stop(jobs=wanted.jobs)
    return json_response(StopBegun(True, running, wanted.jobs), status=202)


async def check_release(call: Call) -> Response:
    decode(call.request.body, Nothing)
    return json_response(call.control.check_release())


async def undrain(call: Call) -> Response:
    await call.control.undrain()
    return json_response(DrainState(draining=False))


def _seconds(timeout: float | str | None) -> float:
    return math.inf if timeout is None else parse_duration(timeout, field="timeout")


ROUTES = (
    Route(
        "GET",
        "/v1/status",
        status,
        ("wait", "timeout"),
        says="How the service is; with `wait` not before it is so.",
        gives=dict[str, object],
        errors=(503,),
        holds="wait",
    ),
    Route(
        "POST",
        "/v1/drain",
        drain,
        says="Start nothing more, and wait until nothing runs.",
        takes=Draining,
        gives=Drained,
        errors=(409, 503),
        holds=True,
    ),
    Route(
        "DELETE",
        "/v1/drain",
        undrain,
        says="Work again.",
        gives=DrainState,
        errors=(),
    ),
    Route(
        "POST",
        "/v1/stop",
        stop,
        says="End the service in order; with `jobs` what runs too.",
        takes=Stopping,
        gives=StopBegun,
        status=202,
        errors=(),
    ),
    Route(
        "POST",
        "/v1/release/check",
        check_release,
        says="Whether the release that runs is still the active one of its home.",
        takes=Nothing,
        gives=ReleaseCheck,
        errors=(409,),
    ),
    Route(
        "GET",
        "/v1/settings",
        show_settings,
        says="Every setting in force.",
        gives=SettingsInForce,
        errors=(),
    ),
    Route(
        "POST",
        "/v1/settings/reload",
        reload_settings,
        says="Read the settings again: all of them hold or none.",
        takes=Nothing,
        gives=Reloaded,
        errors=(409,),
    ),
)
