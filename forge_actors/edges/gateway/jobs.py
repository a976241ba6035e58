"""The routes of jobs: submitting, listing, looking, waiting."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import trio
from msgspec import Struct, structs

from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.holding import Holding
from forge_actors.domain.idempotency import HEADER, key_of
from forge_actors.domain.jobs import KINDS, STATES, JobView
from forge_actors.domain.requests import (
    MAX_BATCH,
    Accepted,
    Explanation,
    JobQuery,
    JobRequest,
    Parent,
    convert,
)
from forge_actors.domain.selection import Selection
from forge_actors.edges.gateway import fences
from forge_actors.edges.gateway.callers import mark_callers
from forge_actors.edges.gateway.messages import JSON_LINES, json_response
from forge_actors.edges.gateway.parameters import number
from forge_actors.edges.gateway.query import (
    at_line,
    beside,
    check_places,
    decode,
    decode_lines,
)
from forge_actors.edges.gateway.route import Route
from forge_actors.edges.gateway.tracing import carry_on

if TYPE_CHECKING:
    from forge_actors.domain.templates import TemplateLine
    from forge_actors.edges.gateway.call import Answer, Call

MAX_PAGE = 1000


class Submission(Struct, forbid_unknown_fields=True):
    jobs: list[JobRequest]


class Submitted(Struct):
    """In the order of what was submitted."""

    jobs: list[Accepted]


class WaitRequest(Struct, forbid_unknown_fields=True):
    jobs: list[str]
    timeout: float | str | None = None


class Waited(Struct):
    """The jobs as they are now; `timed_out`: not all of them have ended."""

    jobs: list[JobView]
    timed_out: bool


class JobPage(Struct):
    """The newest first. `next` is the value of `before` for those that follow, or
    null if there are none."""

    jobs: list[JobView]
    next: str | None


class JobIds(Struct):
    jobs: list[str]


async def list_jobs(call: Call) -> Answer:
    query = call.query
    limit = query.number("limit", 100, least=1, most=MAX_PAGE)
    wanted = {
        "repo": query.all("repo"),
        "state": query.choices("state", STATES),
        "kind": query.choices("kind", KINDS),
        "label": query.all("label"),
        "origin": query.all("origin"),
        "work": query.all("work"),
        "failed": query.flag("failed"),
        "active": query.flag("active"),
        "limit": limit,
        "before": query.one("before"),
    }
    views = await call.control.jobs(convert(wanted, JobQuery))
    # A page that is full may be the last one: the next is empty then.
    last = views[-1].id if len(views) == limit else None
    return json_response(JobPage(views, last))


async def select(call: Call) -> Answer:
    selection = decode(call.request.body, Selection)
    return json_response(JobIds(await call.control.select(selection)))


async def submit(call: Call) -> Answer:
    jobs = decode(call.request.body, Submission).jobs
    if not 1 <= len(jobs) <= MAX_BATCH:
        raise InvalidInput("jobs", f"must hold 1 to {MAX_BATCH} jobs")
    mark_callers(call.request, jobs)
    carry_on(call.request, jobs)
    check_places(jobs)
    accepted = await call.control.submit(jobs, key=_key(call))
    return json_response(Submitted(accepted), status=201)


async def submit_batch(call: Call) -> Answer:
    requests, numbers, by_template = decode_lines(call.request.body)
    base = call.query.one("base")
    if base is not None:
        for request in requests:
            request.repo = beside(base, request.repo)
    parent = call.query.one("parent")
    if parent is not None:
        told = decode(parent.encode(), Parent)
        for request in requests:
            request.parent = told
    mark_callers(call.request, requests)
    try:
        check_places(requests)
        await _fill(call, requests, by_template)
        carry_on(call.request, requests)
        accepted = await call.control.submit(requests, key=_key(call))
    except (InvalidInput, NotFound, Refused) as error:
        raise at_line(error, numbers) from None
    return json_response(Submitted(accepted), status=201)


async def _fill(
    call: Call, requests: list[JobRequest], by_template: dict[int, TemplateLine]
) -> None:
    """Put the jobs that templates make into their places."""
    if by_template:
        wishes = {
            at: (line.template, line.wish(requests[at]))
            for at, line in by_template.items()
        }
        for at, job in (await call.control.jobs_of_templates(wishes)).items():
            requests[at] = job


def _key(call: Call) -> str | None:
    return key_of(call.request.headers.get(HEADER))


async def show_job(call: Call) -> Answer:
    return json_response(await shown(call))


async def shown(call: Call) -> JobView:
    """The job that a path names, with its result."""
    view = await call.control.job(call.parts[0])
    if view.worktree is not None:
        result = await call.control.result(view.id)
        view = structs.replace(view, result=result)
    return view


async def why(call: Call) -> Answer:
    return json_response(await call.control.why(call.parts[0]))


async def wait(call: Call) -> Answer:
    wanted = decode(call.request.body, WaitRequest)
    if not wanted.jobs:
        raise InvalidInput("jobs", "names no job to wait for")
    timeout = wanted.timeout
    seconds = math.inf if timeout is None else parse_duration(timeout, field="timeout")
    with trio.move_on_after(seconds) as limit:
        views = await call.control.wait(wanted.jobs)
    if limit.cancelled_caught:
        views = await call.control.jobs_named(wanted.jobs)
    return json_response(Waited(views, timed_out=limit.cancelled_caught))


async def wait_one(call: Call) -> Answer:
    """The same for one job, as a plain GET."""
    timeout = call.query.one("timeout")
    body = msgspec.json.encode(WaitRequest([call.parts[0]], timeout))
    request = structs.replace(call.request, body=body)
    return await wait(structs.replace(call, request=request))


_FILTERS = ("repo", "state", "kind", "label", "origin", "work", "failed", "active")
_LIMIT = number("limit", "At most so many, 100 by default.", least=1, most=MAX_PAGE)

ROUTES = (
    Route(
        "GET",
        "/v1/jobs",
        list_jobs,
        (*_FILTERS, _LIMIT, "before"),
        says="Jobs, the newest first, a page at a time.",
        gives=JobPage,
        tagged=True,
    ),
    Route(
        "POST",
        "/v1/jobs",
        submit,
        says="Submit jobs: all of them are accepted or none, and durable then.",
        takes=Submission,
        headers=(HEADER,),
        gives=Submitted,
        status=201,
    ),
    Route(
        "POST",
        "/v1/batch",
        submit_batch,
        ("base", "parent"),
        says="Submit jobs, one a line: all of them are accepted or none.",
        takes=JobRequest,
        takes_media=JSON_LINES,
        headers=(HEADER,),
        gives=Submitted,
        status=201,
    ),
    Route(
        "POST",
        "/v1/select",
        select,
        says="The ids of the jobs that a selection means, the newest first.",
        takes=Selection,
        gives=JobIds,
    ),
    Route(
        "POST",
        "/v1/wait",
        wait,
        says="Wait until jobs have ended, or for a time.",
        takes=WaitRequest,
        gives=Waited,
        holds=True,
    ),
    Route(
        "GET",
        "/v1/jobs/{job}",
        show_job,
        says="One job, with its result.",
        gives=JobView,
        tagged=True,
    ),
    Route(
        "GET",
        "/v1/jobs/{job}/why",
        why,
        says="Why a job is where it is, in a sentence.",
        gives=Explanation,
    ),
    Route(
        "GET",
        "/v1/jobs/{job}/wait",
        wait_one,
        ("timeout",),
        says="Wait until a job has ended, or for a time.",
        gives=Waited,
        holds=True,
    ),
    Route(
        "GET",
        "/v1/jobs/{job}/fence",
        fences.check,
        ("attempt", "fence"),
        says="Whether an attempt is still the current one of a job.",
        gives=Holding,
    ),
)
