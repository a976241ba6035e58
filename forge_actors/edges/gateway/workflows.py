"""The routes of workflows."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import trio
from msgspec import Struct

from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.errors import Refused
from forge_actors.domain.picture.graph import picture
from forge_actors.domain.workflow_steps import WorkflowState
from forge_actors.domain.workflow_views import WorkflowRequest, WorkflowView
from forge_actors.edges.gateway.callers import caller, origin_of
from forge_actors.edges.gateway.messages import Response, json_response
from forge_actors.edges.gateway.parameters import number, text, word
from forge_actors.edges.gateway.query import Nothing, decode
from forge_actors.edges.gateway.route import Route

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call

SVG = "image/svg+xml"
#: For a picture that is opened by itself.
SEALED = "default-src 'none'; style-src 'unsafe-inline'"
#: Workflows that one answer tells of.
MAX_TOLD = 500


class Starting(Struct, forbid_unknown_fields=True):
    """`dry_run`: only check it."""

    workflow: WorkflowRequest
    dry_run: bool = False


class WorkflowRetrying(Struct, forbid_unknown_fields=True):
    """The steps to begin anew; none: all that failed."""

    steps: list[str] = []


class Answering(Struct, forbid_unknown_fields=True):
    step: str
    yes: bool


class Waiting(Struct, forbid_unknown_fields=True):
    timeout: str | float | None = None


class WorkflowWaited(Struct):
    """`timed_out`: it has not ended."""

    workflow: WorkflowView
    timed_out: bool


class Workflows(Struct):
    """The newest first, without their steps. `next` is the value of `before` for those
    behind them, or null."""

    workflows: list[WorkflowView]
    next: str | None = None


async def start(call: Call) -> Answer:
    wanted = decode(call.request.body, Starting)
    _check_authority(call, wanted.workflow)
    view = await call.control.run_workflow(
        wanted.workflow, dry_run=wanted.dry_run, origin=origin_of(call.request, "cli")
    )
    return json_response(view, status=200 if wanted.dry_run else 201)


async def listed(call: Call) -> Answer:
    limit = call.query.number("limit", 50, least=1, most=MAX_TOLD)
    call.query.choices("state", get_args(WorkflowState))
    state, before = call.query.one("state"), call.query.one("before")
    views = await call.control.workflows(state, before=before, limit=limit)
    behind = views[-1].id if len(views) == limit else None
    return json_response(Workflows(views, behind))


async def show(call: Call) -> Answer:
    return json_response(await call.control.workflow(call.parts[0]))


async def graph(call: Call) -> Answer:
    """A picture; `seen` only makes its address another one."""
    view = await call.control.workflow(call.parts[0])
    headers = {"content-security-policy": SEALED}
    return Response(200, picture(view).encode(), SVG, headers)


async def pause(call: Call) -> Answer:
    return json_response(await call.control.pause_workflow(call.parts[0]))


async def resume(call: Call) -> Answer:
    return json_response(await call.control.resume_workflow(call.parts[0]))


async def cancel(call: Call) -> Answer:
    return json_response(await call.control.cancel_workflow(call.parts[0]))


async def retry(call: Call) -> Answer:
    wanted = decode(call.request.body or b"{}", WorkflowRetrying)
    name = call.parts[0]
    return json_response(await call.control.retry_workflow(name, wanted.steps))


async def answer(call: Call) -> Answer:
    job = caller(call.request)
    if job is not None:
        raise Refused(f"job {job} cannot answer what a person is asked")
    wanted = decode(call.request.body, Answering)
    view = await call.control.answer_workflow(
        call.parts[0], wanted.step, yes=wanted.yes
    )
    return json_response(view)


async def wait(call: Call) -> Answer:
    wanted, name = decode(call.request.body or b"{}", Waiting), call.parts[0]
    seconds = float("inf")
    if wanted.timeout is not None:
        seconds = parse_duration(wanted.timeout, field="timeout")
    with trio.move_on_after(seconds) as limit:
        await call.control.wait_workflow(name)
    view = await call.control.workflow(name)
    return json_response(WorkflowWaited(view, timed_out=limit.cancelled_caught))


def _check_authority(call: Call, workflow: WorkflowRequest) -> None:
    """A job may begin workflows. What their jobs may do to the outside says a person.

    Raises:
        Refused: a job says it.
    """
    job = caller(call.request)
    jobs = [step.job for step in workflow.steps if step.job is not None]
    parts = (workflow.template, workflow.act, workflow.check)
    jobs += [part.job for part in parts if part is not None]
    if job is not None and any(each.get("authorised") for each in jobs):
        raise Refused(
            f"job {job} cannot authorise what a workflow may do to the outside; a"
            " person can"
        )


_LIMIT = number("limit", "At most so many.", least=1, most=MAX_TOLD)
_STATE = word("state", "Only those in this state.", get_args(WorkflowState))
_BEFORE = text("before", "Only those that are older than this id.")
_SEEN = text("seen", "Anything: for another address than the last picture had.")

ROUTES = (
    Route(
        "GET",
        "/v1/workflows",
        listed,
        (_LIMIT, _STATE, _BEFORE),
        says="The workflows.",
        gives=Workflows,
        errors=(),
    ),
    Route(
        "POST",
        "/v1/workflows",
        start,
        says="Begin a workflow, or only check it.",
        takes=Starting,
        gives=WorkflowView,
        status=201,
    ),
    Route(
        "GET",
        "/v1/workflows/{workflow}",
        show,
        says="One workflow and its steps.",
        gives=WorkflowView,
        errors=(404, 409),
    ),
    Route(
        "GET",
        "/v1/workflows/{workflow}/graph",
        graph,
        (_SEEN,),
        says="The steps of a workflow as a picture.",
        media=SVG,
    ),
    Route(
        "POST",
        "/v1/workflows/{workflow}/pause",
        pause,
        takes=Nothing,
        says="Let nothing new of a workflow begin.",
        gives=WorkflowView,
    ),
    Route(
        "POST",
        "/v1/workflows/{workflow}/resume",
        resume,
        takes=Nothing,
        says="Let a workflow go on.",
        gives=WorkflowView,
    ),
    Route(
        "POST",
        "/v1/workflows/{workflow}/cancel",
        cancel,
        takes=Nothing,
        says="End a workflow and its jobs.",
        gives=WorkflowView,
    ),
    Route(
        "POST",
        "/v1/workflows/{workflow}/retry",
        retry,
        says="Begin what failed of a workflow anew.",
        takes=WorkflowRetrying,
        gives=WorkflowView,
    ),
    Route(
        "POST",
        "/v1/workflows/{workflow}/answer",
        answer,
        says="Answer what a step of a workflow asks.",
        takes=Answering,
        gives=WorkflowView,
    ),
    Route(
        "POST",
        "/v1/workflows/{workflow}/wait",
        wait,
        says="Wait until a workflow has ended.",
        takes=Waiting,
        gives=WorkflowWaited,
        holds=True,
    ),
)
