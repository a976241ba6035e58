"""The routes of the HTTP interface: each asks the runtime one thing."""

from __future__ import annotations

import logging
import math
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio
from msgspec import Struct, structs

from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.errors import (
    ForgeError,
    InvalidInput,
    NotFound,
    Refused,
    StoreFailed,
)
from forge_actors.domain.jobs import KINDS, STATES
from forge_actors.domain.requests import (
    MAX_BATCH,
    JobQuery,
    JobRequest,
    Parent,
    convert,
)
from forge_actors.domain.selection import Selection
from forge_actors.edges.gateway import (
    artifacts,
    cleaning,
    fences,
    following,
    inbox,
    logs,
    quarantine,
    repositories,
    results,
    schedules,
    state,
    steering,
    usage,
    worktrees,
)
from forge_actors.edges.gateway.call import Answer, Call, Verb
from forge_actors.edges.gateway.events import PARAMETERS, event_lines
from forge_actors.edges.gateway.messages import (
    Request,
    Response,
    error_response,
    json_response,
)
from forge_actors.edges.gateway.query import (
    Query,
    at_line,
    beside,
    check_places,
    decode,
    decode_lines,
)

if TYPE_CHECKING:
    from forge_actors.domain.control import Control
    from forge_actors.edges.gateway.messages import Handler

log = logging.getLogger(__name__)

MAX_PAGE = 1000


class Submission(Struct, forbid_unknown_fields=True):
    jobs: list[JobRequest]


class SeveralJobs(Struct, forbid_unknown_fields=True):
    jobs: list[str]


class Waiting(Struct, forbid_unknown_fields=True):
    jobs: list[str]
    timeout: float | str | None = None


def handler(control: Control) -> Handler:
    """The handler that serves `control` under every route."""
    return partial(_handle, control)


async def _handle(control: Control, request: Request) -> Answer:
    try:
        return await _route(control, request)
    except ForgeError as error:
        # A store that saves nothing says so itself, once and not for each request.
        if error.http_status >= 500 and not isinstance(error, StoreFailed):
            log.warning("%s /%s: %s", request.method, "/".join(request.path), error)
        return _refused(error)


def _refused(error: ForgeError) -> Response:
    details: dict[str, object] = {}
    if isinstance(error, InvalidInput):
        details["field"] = error.field
        if error.allowed:
            details["allowed"] = error.allowed
    return error_response(error.http_status, error.code, str(error), details=details)


def holds(request: Request) -> bool:
    """Whether its route keeps a request open until something happens elsewhere.

    Asked before the request is checked, so one that will be refused may count as held.
    """
    route = _find(_method(request), request.path)
    if route is None:
        return False
    if isinstance(route.holds, str):
        return f"{route.holds}=" in request.query
    return route.holds


async def _route(control: Control, request: Request) -> Answer:
    route = _find(_method(request), request.path)
    if route is not None:
        query = Query(request.query, route.parameters)
        return await route.verb(Call(control, request, query, route.parts(request)))
    path = "/" + "/".join(request.path)
    others = [route.method for route in ROUTES if route.leads_to(request.path)]
    if others:
        return error_response(
            405,
            "METHOD_NOT_ALLOWED",
            f"{path} answers {' and '.join(others)}, not {request.method}",
            headers={"allow": ", ".join(others)},
        )
    return error_response(404, "NO_SUCH_ROUTE", f"there is nothing at {path}")


def _method(request: Request) -> str:
    return "GET" if request.method == "HEAD" else request.method


def _find(method: str, path: tuple[str, ...]) -> Route | None:
    route = _FIXED.get((method, path))
    if route is not None:
        return route
    for route in _VARIABLE:
        if route.method == method and route.leads_to(path):
            return route
    return None


async def list_jobs(call: Call) -> Answer:
    query = call.query
    wanted = {
        "repo": query.all("repo"),
        "state": query.choices("state", STATES),
        "kind": query.choices("kind", KINDS),
        "label": query.all("label"),
        "origin": query.all("origin"),
        "failed": query.flag("failed"),
        "active": query.flag("active"),
        "limit": query.number("limit", 100, least=1, most=MAX_PAGE),
        "before": query.one("before"),
    }
    views = await call.control.jobs(convert(wanted, JobQuery))
    return json_response({"jobs": views})


async def select(call: Call) -> Answer:
    selection = decode(call.request.body, Selection)
    return json_response({"jobs": await call.control.select(selection)})


async def submit(call: Call) -> Answer:
    jobs = decode(call.request.body, Submission).jobs
    if not 1 <= len(jobs) <= MAX_BATCH:
        raise InvalidInput("jobs", f"must hold 1 to {MAX_BATCH} jobs")
    check_places(jobs)
    return json_response({"jobs": await call.control.submit(jobs)}, status=201)


async def submit_batch(call: Call) -> Answer:
    requests, numbers = decode_lines(call.request.body)
    base = call.query.one("base")
    if base is not None:
        for request in requests:
            request.repo = beside(base, request.repo)
    parent = call.query.one("parent")
    if parent is not None:
        told = decode(parent.encode(), Parent)
        for request in requests:
            request.parent = told
    try:
        check_places(requests)
        accepted = await call.control.submit(requests)
    except (InvalidInput, NotFound, Refused) as error:
        raise at_line(error, numbers) from None
    return json_response({"jobs": accepted}, status=201)


async def show_job(call: Call) -> Answer:
    view = await call.control.job(call.parts[0])
    if view.worktree is not None:
        result = await call.control.result(view.id)
        view = structs.replace(view, result=result)
    return json_response(view)


async def why(call: Call) -> Answer:
    return json_response(await call.control.why(call.parts[0]))


async def read_log(call: Call) -> Answer:
    selector, stream = call.parts
    return await logs.log_stream(call.control, selector, stream, call.query)


async def read_logs(call: Call) -> Answer:
    jobs = decode(call.request.body, SeveralJobs).jobs
    return await logs.log_streams(call.control, jobs, call.query)


async def wait(call: Call) -> Answer:
    wanted = decode(call.request.body, Waiting)
    if not wanted.jobs:
        raise InvalidInput("jobs", "names no job to wait for")
    timeout = _seconds(wanted.timeout, field="timeout")
    with trio.move_on_after(math.inf if timeout is None else timeout) as limit:
        views = await call.control.wait(wanted.jobs)
    if limit.cancelled_caught:
        views = await call.control.jobs_named(wanted.jobs)
    return json_response({"jobs": views, "timed_out": limit.cancelled_caught})


async def wait_one(call: Call) -> Answer:
    """The same for one job, as a plain GET."""
    timeout = call.query.one("timeout")
    body = msgspec.json.encode(Waiting([call.parts[0]], timeout))
    request = structs.replace(call.request, body=body)
    return await wait(structs.replace(call, request=request))


def _seconds(value: float | str | None, *, field: str) -> float | None:
    return None if value is None else parse_duration(value, field=field)


async def events(call: Call) -> Answer:
    return await event_lines(call.control, call.query)


class Route:
    """A method and a path, names in place of its variable parts, and what they do.

    `parameters` are those of the query. `holds` says whether a request is kept open
    until something happens elsewhere; a name says that this parameter asks for it.
    """

    def __init__(
        self,
        method: str,
        path: str,
        verb: Verb,
        parameters: tuple[str, ...] = (),
        *,
        holds: bool | str = False,
    ) -> None:
        self.method = method
        self.path = tuple(path.split("/")[1:])
        self.verb = verb
        self.parameters = parameters
        self.holds = holds
        #: The last part stands for all that follows.
        self.open_end = self.path[-1].endswith("*}")
        #: Where its variable parts are.
        self.places = tuple(
            place for place, part in enumerate(self.path) if part.startswith("{")
        )

    def leads_to(self, path: tuple[str, ...]) -> bool:
        if self.open_end:
            path = self._joined(path)
        return len(path) == len(self.path) and all(
            want == part or want.startswith("{")
            for want, part in zip(self.path, path, strict=True)
        )

    def parts(self, request: Request) -> tuple[str, ...]:
        path = self._joined(request.path) if self.open_end else request.path
        return tuple(path[place] for place in self.places)

    def _joined(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """The path with all that the last part stands for as one."""
        last = len(self.path) - 1
        return (*path[:last], "/".join(path[last:])) if path[last:] else path


_FILTERS = ("repo", "state", "kind", "label", "origin", "failed", "active")
_PAGE = ("limit", "before")

ROUTES = (
    Route("GET", "/v1/status", state.status, ("wait", "timeout"), holds="wait"),
    Route("POST", "/v1/drain", state.drain, holds=True),
    Route("DELETE", "/v1/drain", state.undrain),
    Route("POST", "/v1/stop", state.stop),
    Route("POST", "/v1/release/check", state.check_release),
    Route("POST", "/v1/clean", cleaning.clean, holds=True),
    Route("GET", "/v1/settings", state.show_settings),
    Route("POST", "/v1/settings/reload", state.reload_settings),
    Route("GET", "/v1/jobs", list_jobs, _FILTERS + _PAGE),
    Route("POST", "/v1/jobs", submit),
    Route("POST", "/v1/select", select),
    Route("POST", "/v1/batch", submit_batch, ("base", "parent")),
    Route("GET", "/v1/jobs/{job}", show_job),
    Route("GET", "/v1/jobs/{job}/why", why),
    Route("GET", "/v1/jobs/{job}/fence", fences.check, ("attempt", "fence")),
    Route("GET", "/v1/jobs/{job}/wait", wait_one, ("timeout",), holds=True),
    Route(
        "GET",
        "/v1/jobs/{job}/logs/{stream}",
        read_log,
        logs.PARAMETERS,
        holds="follow",
    ),
    Route("GET", "/v1/jobs/{job}/artifacts", artifacts.listed, ("attempt",)),
    Route("GET", "/v1/jobs/{job}/artifacts/{path*}", artifacts.content, ("attempt",)),
    Route("GET", "/v1/jobs/{job}/diff", results.diff, ("form",)),
    Route("POST", "/v1/jobs/{job}/apply", results.apply, holds=True),
    Route("POST", "/v1/logs", read_logs, logs.MANY_PARAMETERS, holds="follow"),
    Route("POST", "/v1/jobs/{job}/cancel", steering.cancel),
    Route("POST", "/v1/jobs/{job}/hold", steering.hold),
    Route("POST", "/v1/jobs/{job}/unhold", steering.unhold),
    Route("POST", "/v1/jobs/{job}/pause", steering.pause_job),
    Route("POST", "/v1/jobs/{job}/resume", steering.resume_job),
    Route("POST", "/v1/jobs/{job}/edit", steering.edit),
    Route("POST", "/v1/bulk/{action}", steering.bulk),
    Route("POST", "/v1/pause", steering.pause),
    Route("POST", "/v1/resume", steering.resume),
    Route("POST", "/v1/jobs/{job}/answer", inbox.answer),
    Route("POST", "/v1/jobs/{job}/approve", inbox.approve),
    Route("POST", "/v1/jobs/{job}/deny", inbox.deny),
    Route("GET", "/v1/inbox", inbox.listed),
    Route("POST", "/v1/inbox/dismiss", inbox.dismiss),
    Route("GET", "/v1/quarantine", quarantine.listed),
    Route("POST", "/v1/quarantine/{job}/release", quarantine.release),
    Route("POST", "/v1/jobs/{job}/retry", following.retry_one),
    Route("POST", "/v1/jobs/{job}/continue", following.go_on),
    Route("POST", "/v1/retry", following.retry),
    Route("POST", "/v1/wait", wait, holds=True),
    Route("GET", "/v1/repositories", repositories.listed),
    Route("POST", "/v1/repositories", repositories.add),
    Route("GET", "/v1/repositories/{name}", repositories.show),
    Route(
        "DELETE",
        "/v1/repositories/{name}",
        repositories.remove,
        ("cancel",),
        holds="cancel",
    ),
    Route("POST", "/v1/repositories/{name}/relocate", repositories.relocate),
    Route("POST", "/v1/repositories/{name}/enable", repositories.enable),
    Route("POST", "/v1/repositories/{name}/disable", repositories.disable),
    Route("GET", "/v1/worktrees", worktrees.listed, worktrees.PARAMETERS),
    Route("POST", "/v1/worktrees/keep", worktrees.keep),
    Route("POST", "/v1/worktrees/unkeep", worktrees.unkeep),
    Route("POST", "/v1/worktrees/remove", worktrees.remove, holds=True),
    Route("POST", "/v1/worktrees/{id}/restore", worktrees.restore, holds=True),
    Route("GET", "/v1/schedules", schedules.listed),
    Route("POST", "/v1/schedules", schedules.add),
    Route("POST", "/v1/schedules/apply", schedules.apply),
    Route("GET", "/v1/schedules/{name}", schedules.show),
    Route("DELETE", "/v1/schedules/{name}", schedules.remove),
    Route("POST", "/v1/schedules/{name}/edit", schedules.edit),
    Route("POST", "/v1/schedules/{name}/pause", schedules.pause),
    Route("POST", "/v1/schedules/{name}/resume", schedules.resume),
    Route("POST", "/v1/schedules/{name}/run", schedules.run),
    Route("GET", "/v1/schedules/{name}/next", schedules.next_times, ("count",)),
    Route("GET", "/v1/schedules/{name}/occurrences", schedules.occurrences, ("limit",)),
    Route("GET", "/v1/usage", usage.added_up, usage.PARAMETERS),
    Route("GET", "/v1/events", events, PARAMETERS, holds="follow"),
)
_FIXED = {(route.method, route.path): route for route in ROUTES if not route.places}
_VARIABLE = tuple(route for route in ROUTES if route.places)
