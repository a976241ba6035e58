"""The routes that steer jobs: holds, pauses, edits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.errors import InvalidInput, Outdated
from forge_actors.domain.jobs import JobView
from forge_actors.domain.pauses import PauseView
from forge_actors.domain.requests import JobEdit, unknown_word
from forge_actors.domain.selection import MAX_SELECTED
from forge_actors.domain.steering import STEERINGS
from forge_actors.edges.gateway.jobs import shown
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.query import Nothing, decode
from forge_actors.edges.gateway.route import Route
from forge_actors.edges.gateway.tags import IF_MATCH, matches, tag_of

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Call
    from forge_actors.edges.gateway.messages import Response


class Scope(Struct, forbid_unknown_fields=True):
    scope: str
    jobs: bool = False


class Cancellation(Struct, forbid_unknown_fields=True):
    grace: float | str | None = None


class Bulk(Struct, forbid_unknown_fields=True):
    """Whole ids or selectors; `grace` is for `cancel`."""

    jobs: list[str]
    grace: float | str | None = None


class Steered(Struct):
    """The jobs as they are now."""

    jobs: list[JobView]


class Pauses(Struct):
    """All pauses that there are now."""

    pauses: list[PauseView]


async def cancel(call: Call) -> Response:
    grace = _grace(decode(call.request.body, Cancellation).grace)
    return json_response(await call.control.cancel(call.parts[0], grace=grace))


async def bulk(call: Call) -> Response:
    """One action for many jobs, whose views are the answer."""
    wanted = decode(call.request.body, Bulk)
    if not 1 <= len(wanted.jobs) <= MAX_SELECTED:
        raise InvalidInput("jobs", f"must name 1 to {MAX_SELECTED} jobs")
    action = call.parts[0]
    if action == "cancel":
        grace = _grace(wanted.grace)
        jobs = await call.control.cancel_all(wanted.jobs, grace=grace)
        return json_response(Steered(jobs))
    if wanted.grace is not None:
        raise InvalidInput("grace", "is only for cancel")
    for how in STEERINGS:
        if action == how:
            jobs = await call.control.steer_all(wanted.jobs, how)
            return json_response(Steered(jobs))
    raise unknown_word("action", action, ("cancel", *STEERINGS))


def _grace(value: float | str | None) -> float | None:
    return None if value is None else parse_duration(value, field="grace")


async def hold(call: Call) -> Response:
    decode(call.request.body, Nothing)
    return json_response(await call.control.hold(call.parts[0]))


async def unhold(call: Call) -> Response:
    decode(call.request.body, Nothing)
    return json_response(await call.control.unhold(call.parts[0]))


async def pause_job(call: Call) -> Response:
    decode(call.request.body, Nothing)
    return json_response(await call.control.pause_job(call.parts[0]))


async def resume_job(call: Call) -> Response:
    decode(call.request.body, Nothing)
    return json_response(await call.control.resume_job(call.parts[0]))


async def edit(call: Call) -> Response:
    wanted = decode(call.request.body, JobEdit)
    known, mark, job = call.request.headers.get(IF_MATCH), None, call.parts[0]
    if known is not None and known.strip() != "*":
        # Before it is looked at: whatever changes it from here on is noticed.
        mark = await call.control.job_mark(job)
        tag = tag_of(json_response(await shown(call)))
        if not matches(known, tag):
            raise Outdated(f"job {job}")
    return json_response(await call.control.edit(job, wanted, mark=mark))


async def pause(call: Call) -> Response:
    wanted = decode(call.request.body, Scope)
    pauses = await call.control.pause(wanted.scope, jobs=wanted.jobs)
    return json_response(Pauses(pauses))


async def resume(call: Call) -> Response:
    wanted = decode(call.request.body, Scope)
    pauses = await call.control.resume(wanted.scope, jobs=wanted.jobs)
    return json_response(Pauses(pauses))


ROUTES = (
    Route(
        "POST",
        "/v1/jobs/{job}/cancel",
        cancel,
        says="End a job; one that runs is only asked to when this is answered.",
        takes=Cancellation,
        gives=JobView,
    ),
    Route(
        "POST",
        "/v1/jobs/{job}/hold",
        hold,
        says="Keep a job that waits from starting.",
        takes=Nothing,
        gives=JobView,
    ),
    Route(
        "POST",
        "/v1/jobs/{job}/unhold",
        unhold,
        says="Let a job start that is held.",
        takes=Nothing,
        gives=JobView,
    ),
    Route(
        "POST",
        "/v1/jobs/{job}/pause",
        pause_job,
        says="Suspend a job that runs; hold one that waits.",
        takes=Nothing,
        gives=JobView,
    ),
    Route(
        "POST",
        "/v1/jobs/{job}/resume",
        resume_job,
        says="Let a job go on.",
        takes=Nothing,
        gives=JobView,
    ),
    Route(
        "POST",
        "/v1/jobs/{job}/edit",
        edit,
        says="Change all of the given fields of a job that waits, or none.",
        takes=JobEdit,
        headers=(IF_MATCH,),
        errors=(404, 409, 412),
        gives=JobView,
    ),
    Route(
        "POST",
        "/v1/bulk/{action}",
        bulk,
        says="One action for many jobs: cancel, hold, unhold, pause or resume.",
        takes=Bulk,
        gives=Steered,
    ),
    Route(
        "POST",
        "/v1/pause",
        pause,
        says="Start nothing more in `all`, `repo:NAME` or `provider:NAME`.",
        takes=Scope,
        gives=Pauses,
    ),
    Route(
        "POST",
        "/v1/resume",
        resume,
        says="End such a pause.",
        takes=Scope,
        gives=Pauses,
    ),
)
