"""What a step of a workflow waits for, and what will wake it.

A step has a job, which waits as any other does, or none yet. Each kind of wait ends
with one kind of event, of which whoever holds the step back is told; nothing polls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct

from forge_actors.domain.waiting import WaitingKind
from forge_actors.domain.workflow_steps import ENDED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.jobs import JobView
    from forge_actors.domain.workflow_steps import StepState, WorkflowState

Wake = Literal[
    "account_opened",
    "claim_released",
    "job_ended",
    "moment",
    "pause_ended",
    "person_answered",
    "policy_changed",
    "pressure_ended",
    "program_found",
    "repository_enabled",
    "step_ended",
    "token_returned",
    "workflow_resumed",
]
WAKES: tuple[Wake, ...] = get_args(Wake)

#: What ends each wait of a job.
ENDS: dict[WaitingKind, Wake] = {
    "dependency": "job_ended",
    "claim": "claim_released",
    "token": "token_returned",
    "pause": "pause_ended",
    "pressure": "pressure_ended",
    "limit": "account_opened",
    "approval": "person_answered",
    "agent": "program_found",
    "retry": "moment",
    # What is reserved is free once the job that goes first has had it.
    "reservation": "claim_released",
    "disabled": "repository_enabled",
    "policy": "policy_changed",
}
#: The capacity of a workflow: how many of its jobs wait or run at once.
PARALLEL = "parallel"


class StepWait(Struct, frozen=True):
    """Why a step does not run now."""

    kind: WaitingKind
    detail: str
    wakes: Wake
    #: The claim, the kind of token or the program that it lacks.
    resource: str | None = None
    #: The jobs that have it, and the works that these are of.
    holders: tuple[str, ...] = ()
    works: tuple[str, ...] = ()


def of_job(view: JobView, works: Mapping[str, str]) -> StepWait | None:
    """What the job of a step waits for; None if it runs. `works` are those of jobs."""
    waiting = view.waiting
    if waiting is None:
        return None
    kind: WaitingKind = waiting["kind"]  # type: ignore[assignment]  # made of one
    holders = holders_of(view)
    resource = waiting.get("resource")
    return StepWait(
        kind,
        str(waiting["detail"]),
        ENDS[kind],
        None if resource is None else str(resource),
        holders,
        tuple(dict.fromkeys(works[job] for job in holders if job in works)),
    )


def holders_of(view: JobView) -> tuple[str, ...]:
    """The jobs that have what this one waits for."""
    told = (view.waiting or {}).get("holders")
    return tuple(map(str, told)) if isinstance(told, list) else ()


def without_job(
    workflow: WorkflowState, before: Mapping[str, StepState], *, full: bool
) -> StepWait | None:
    """What a step waits for that has no job yet; `before` are those it runs after, and
    `full` whether as many jobs of its workflow wait or run as may."""
    open_ = [name for name, state in before.items() if state not in ENDED]
    if open_:
        detail = f"it runs after {', '.join(open_)}"
        return StepWait("dependency", detail, "step_ended")
    if workflow == "paused":
        detail = "its workflow is paused; forge-actors workflow resume ends that"
        return StepWait("pause", detail, "workflow_resumed")
    if full:
        detail = "as many jobs of its workflow wait or run as may at once"
        return StepWait("token", detail, "step_ended", PARALLEL)
    return None
