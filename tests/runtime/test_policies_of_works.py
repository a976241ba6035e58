"""Policies and workflows: which are begun, which go on, whose jobs are started."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.errors import AdmissionBlocked
from forge_actors.domain.policies import PolicyRequest
from forge_actors.domain.workflow_views import StepRequest, WorkflowRequest
from tests.runtime.control_kit import controlled

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors import Runtime

TRUE = {"argv": ["true"], "read_only": True}


def workflow(name: str) -> WorkflowRequest:
    """One that asks before its last job."""
    steps = [
        StepRequest("first", job=TRUE),
        StepRequest("last", job=TRUE, after=["first"], gate="go on?"),
    ]
    return WorkflowRequest(name, repo="app", steps=steps)


async def test_what_is_open_is_brought_to_its_end_and_nothing_else(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        control = case.control
        one = await control.run_workflow(workflow("one"))
        two = await control.run_workflow(workflow("two"))
        await control.set_policy(PolicyRequest("convergence"))
        with pytest.raises(AdmissionBlocked) as told:
            await control.run_workflow(workflow("new"))
        assert told.value.code == "WORK_ADMISSION_BLOCKED:CONVERGENCE"
        # That it could be begun may be asked.
        await control.run_workflow(workflow("new"), dry_run=True)
        await control.pause_workflow("one")
        await control.resume_workflow("one")
        narrowed = PolicyRequest("exclusive", work="one")
        view = await control.set_policy(narrowed, narrows=True)
        assert view.work == one.id
        for call in (
            control.run_workflow(workflow("new")),
            control.resume_workflow("two"),
            control.retry_workflow("two"),
        ):
            with pytest.raises(AdmissionBlocked) as told:
                await call
            assert told.value.code == "WORK_ADMISSION_BLOCKED:P0_EXCLUSIVE_WORK"
            assert one.id in str(told.value)
        waits = await case.submit()
        await _answer(case.runtime, one.id)
        assert "has ended" not in (await control.policy()).note
        assert (await control.wait_workflow("one")).state == "succeeded"
        note = (await control.policy()).note
        assert note.endswith("; that work has ended: it is succeeded")
        assert (await case.why(waits))[1]["kind"] == "policy"
        # Also of one that goes on meanwhile no job is started.
        await _answer(case.runtime, two.id)
        jobs: list[str] = []
        async for event in case.runtime.events(after=0):
            if event.kind == "job_queued" and event.data.get("work") == two.id:
                jobs.append(event.job or "")
            if len(jobs) == 2:
                break
        assert (await case.why(jobs[-1]))[1]["kind"] == "policy"
        await control.set_policy(PolicyRequest("normal"))
        assert (await control.wait_workflow("two")).state == "succeeded"


async def _answer(runtime: Runtime, key: str) -> None:
    """Say yes once it asks."""
    control = runtime.control
    async for _ in runtime.events(after=0):
        view = await control.workflow(key)
        if any(step.state == "asking" for step in view.steps):
            await control.answer_workflow(key, "last", yes=True)
            return
