"""The ends of jobs as workflows hear of them, whatever is saved of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from forge_actors.domain.changes import JobDispatched, JobEnded
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import JobError
from forge_actors.domain.policies import PolicyRequest
from forge_actors.domain.workflow_views import StepRequest, WorkflowRequest
from forge_actors.domain.workflows import MAX_UNDECIDED
from forge_actors.runtime.step_ends import step_end
from tests.domain.making import make_receipt
from tests.runtime.admission_kit import admission
from tests.runtime.control_kit import controlled

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.jobs import State
    from forge_actors.domain.launch import Receipt
    from forge_actors.domain.workflow_views import StepView, WorkflowView
    from tests.runtime.admission_kit import Case
    from tests.runtime.control_kit import Case as RuntimeCase


async def ended(
    case: Case,
    state: State,
    error: JobError | None,
    receipt: Receipt | None,
    kind: str = "check",
) -> str:
    """A job that has ended so."""
    job = await case.submit("make", kind=kind)
    fence = 5 + len(case.told)
    if receipt is not None:
        event = Event("job_dispatched", 2.0, job.repo, job.id)
        change = JobDispatched(job.id, job.repo, 1, fence, 2.0, event)
        await case.store.save([change]).wait()
        receipt = structs.replace(receipt, job=job.id, fence=fence)
    event = Event(f"job_{state}", 3.0, job.repo, job.id)
    held = (1, fence) if receipt is not None else (0, None)
    end = JobEnded(job.id, *held, state, error, 3.0, receipt, event)
    await case.store.save([end]).wait()
    return job.id


BAD = JobError("EXIT_NONZERO", "exit status 7 token=ghp_" + "a" * 36)
LATE = JobError("EXECUTION_TIMEOUT", "it ran longer than its time limit")


@pytest.mark.parametrize(
    ("state", "error", "receipt", "told"),
    [
        ("succeeded", None, make_receipt(exit_code=0), ("succeeded", "passed", False)),
        ("failed", BAD, make_receipt(exit_code=7), ("failed", "failed", False)),
        ("timed_out", LATE, make_receipt("wall"), ("timed_out", None, True)),
        ("succeeded", None, make_receipt(exit_code=1), ("failed", None, True)),
        ("cancelled", JobError("CANCELLED", "x"), None, ("cancelled", None, False)),
    ],
)
async def test_the_end_of_a_check_is_a_verdict_or_none(
    tmp_path: Path,
    state: State,
    error: JobError | None,
    receipt: Receipt | None,
    told: tuple[str, str | None, bool],
) -> None:
    async with admission(tmp_path) as case:
        job = await ended(case, state, error, receipt)
        end = step_end(case.store, job, state)
        found = told[1] or "infrastructure_failure"
        assert (end.state, end.validation, end.retryable) == (told[0], found, told[2])
        assert step_end(case.store, job, state) == end
        if found != "passed":
            assert end.why is not None
            assert end.why.startswith(f"job {job} {state}")
            assert "ghp_" not in end.why
            assert ("infrastructure failure" in end.why) == (found != "failed")


@pytest.mark.parametrize("column", ["receipt", "error"])
async def test_what_cannot_be_read_stops_nobody(tmp_path: Path, column: str) -> None:
    async with admission(tmp_path) as case:
        bad = make_receipt(exit_code=7)
        check = await ended(case, "failed", BAD, bad)
        other = await ended(case, "failed", BAD, bad, kind="repository-command")
        broken = f"UPDATE job SET {column} = CAST('{{' AS BLOB)"
        if column == "error":
            broken = "UPDATE job SET error = '{'"
        case.store._db.execute(broken)
        end = step_end(case.store, check, "failed")
        assert (end.validation, end.retryable) == ("infrastructure_failure", True)
        assert "cannot be read" in (end.why or "")
        plain = step_end(case.store, other, "failed")
        assert (plain.state, plain.validation, plain.retryable) == (
            *("failed", None, False),
        )


async def test_other_jobs_are_told_as_they_ended(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        good = make_receipt(exit_code=0)
        job = await ended(case, "succeeded", None, good, kind="repository-command")
        end = step_end(case.store, job, "succeeded")
        assert (end.state, end.why, end.validation) == ("succeeded", None, None)
        job = await ended(case, "timed_out", LATE, make_receipt("wall"), "integration")
        end = step_end(case.store, job, "timed_out")
        assert (end.validation, end.retryable) == (None, False)


async def test_a_check_that_cannot_start_is_tried_again_up_to_a_bound(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        job = {"argv": ["./not-there"], "kind": "check"}
        steps = [
            StepRequest("check", job=job, retries=0),
            StepRequest("behind", job={"argv": ["true"]}, after=["check"]),
            StepRequest("beside", job={"argv": ["true"], "kind": "check"}),
        ]
        await case.control.run_workflow(WorkflowRequest("w", repo="app", steps=steps))
        view = await case.control.wait_workflow("w")
        check, behind, beside = view.steps
        assert (check.state, check.tries) == ("failed", MAX_UNDECIDED)
        assert check.validation == "infrastructure_failure"
        assert "infrastructure failure" in (check.why or "")
        assert (behind.state, beside.validation) == ("skipped", "passed")


async def test_a_step_says_which_work_has_what_it_waits_for(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        control = case.control
        long = {"argv": ["sleep", "600"], "claims": ["write:path:a"]}
        holds = await control.run_workflow(_one("holds", long))
        await _until_runs(case, holds)
        short = {"argv": ["true"], "claims": ["write:path:a"]}
        waits = await control.run_workflow(_one("waits", short))
        step = await _waiting(case, waits)
        assert step.waiting is not None
        wait = step.waiting
        assert (wait.kind, wait.wakes) == ("claim", "claim_released")
        assert wait.resource == "write:path:a"
        [holder] = (await control.workflow(holds.id)).steps
        assert (wait.holders, wait.works) == ((holder.job,), (holds.id,))
        # The end of that, and nothing else, wakes it.
        await control.cancel_workflow(holds.id)
        assert (await control.wait_workflow(waits.id)).state == "succeeded"
        await control.set_policy(PolicyRequest("maintenance"))
        late = await control.run_workflow(_one("late", short))
        step = await _waiting(case, late)
        assert step.waiting is not None
        assert (step.waiting.kind, step.waiting.wakes) == ("policy", "policy_changed")
        await control.set_policy(PolicyRequest("normal"))
        assert (await control.wait_workflow(late.id)).state == "succeeded"


def _one(name: str, job: dict[str, Any]) -> WorkflowRequest:
    return WorkflowRequest(name, repo="app", steps=[StepRequest("only", job=job)])


async def _until_runs(case: RuntimeCase, workflow: WorkflowView) -> None:
    async for event in case.runtime.events(after=0):
        if event.kind == "job_running":
            view = await case.control.job(event.job or "")
            if view.work == workflow.id:
                return


async def _waiting(case: RuntimeCase, workflow: WorkflowView) -> StepView:
    """Its only step, once its job waits."""
    async for event in case.runtime.events(after=0):
        if event.data.get("work") == workflow.id:
            break
    while True:
        [step] = (await case.control.workflow(workflow.id)).steps
        if step.waiting is not None:
            return step
        await case.runtime.control.news()
