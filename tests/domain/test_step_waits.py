"""What a step waits for, by which work, claim or capacity, and what will wake it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from forge_actors.domain.step_waits import (
    ENDS,
    PARALLEL,
    WAKES,
    StepWait,
    of_job,
    without_job,
)
from forge_actors.domain.validation import Validation
from forge_actors.domain.waiting import WAITING_KINDS
from forge_actors.domain.workflow_steps import StepEnd, StepState, WorkflowState
from forge_actors.domain.workflows import MAX_UNDECIDED
from tests.cli.board_kit import job
from tests.domain.test_workflows import begun, end, states, step, take_all

if TYPE_CHECKING:
    from forge_actors.domain.workflows import Graph

LOST = StepEnd(
    "timed_out", "it ran too long", retryable=True, validation="infrastructure_failure"
)
WRONG = StepEnd("failed", "exit status 1", validation="failed")


def test_every_wait_ends_with_an_event() -> None:
    assert ENDS.keys() == set(WAITING_KINDS)
    assert set(ENDS.values()) | {"step_ended", "workflow_resumed"} == set(WAKES)


def test_a_claim_is_named_with_its_holders_and_their_works() -> None:
    waiting: dict[str, object] = {
        "kind": "claim",
        "detail": "write:path:a conflicts with what j1 holds",
        "holders": ["j1", "j2", "j3"],
        "resource": "write:path:a",
    }
    view = job(1, waiting=waiting)
    wait = of_job(view, {"j1": "wf-1", "j3": "wf-1", "other": "wf-9"})
    assert wait == StepWait(
        "claim",
        "write:path:a conflicts with what j1 holds",
        "claim_released",
        "write:path:a",
        ("j1", "j2", "j3"),
        ("wf-1",),
    )
    assert of_job(structs.replace(view, waiting=None), {}) is None


@pytest.mark.parametrize(
    ("workflow", "before", "full", "kind", "wakes"),
    [
        (
            "running",
            {"a": "running", "b": "succeeded"},
            True,
            "dependency",
            "step_ended",
        ),
        ("running", {"a": "failed"}, True, "token", "step_ended"),
        ("paused", {}, True, "pause", "workflow_resumed"),
        ("running", {"a": "skipped"}, False, None, None),
    ],
)
def test_a_step_without_a_job_says_what_it_waits_for(
    workflow: WorkflowState,
    before: dict[str, StepState],
    kind: str | None,
    wakes: str | None,
    *,
    full: bool,
) -> None:
    wait = without_job(workflow, before, full=full)
    assert (wait and wait.kind, wait and wait.wakes) == (kind, wakes)
    if wait is not None and kind == "token":
        assert wait.resource == PARALLEL
    if wait is not None and kind == "dependency":
        assert wait.detail == "it runs after a"


# -- what nothing was found out of -----------------------------------------------------


def only(plan: Graph) -> tuple[str, int, int, str | None]:
    [one] = plan.steps
    return one.state, one.failures, one.undecided, one.validation


def test_nothing_found_out_is_no_failure_and_is_tried_again() -> None:
    plan = begun(step("a"))
    for number in range(1, MAX_UNDECIDED):
        assert take_all(plan) == ["a"]
        assert end(plan, "a", LOST) == ["a"]
        assert only(plan) == ("waiting", 0, number, "infrastructure_failure")
        assert plan.steps[0].why == "it ran too long; it is tried again"
    assert take_all(plan) == ["a"]
    assert plan.steps[0].validation is None
    end(plan, "a", LOST)
    assert only(plan) == ("failed", 1, MAX_UNDECIDED - 1, "infrastructure_failure")
    assert plan.verdict is not None


def test_a_verdict_counts_whatever_was_lost_before() -> None:
    plan = begun(step("a", retries=1))
    for how in (LOST, WRONG, LOST):
        take_all(plan)
        end(plan, "a", how)
    assert only(plan) == ("waiting", 1, 2, "infrastructure_failure")
    take_all(plan)
    end(plan, "a", WRONG)
    assert only(plan) == ("failed", 2, 2, "failed")


def test_what_was_cancelled_is_not_begun_anew_by_itself() -> None:
    plan = begun(step("a", retries=3))
    take_all(plan)
    end(plan, "a", structs.replace(LOST, state="cancelled", retryable=False))
    assert states(plan) == {"a": "failed"}
    plan.retry([])
    assert only(plan)[:3] == ("waiting", 0, 0)


def test_what_is_lost_while_a_workflow_is_cancelled_begins_nothing() -> None:
    plan = begun(step("a"), step("b"), on_failure="stop")
    take_all(plan)
    plan.cancel(2.0)
    end(plan, "a", LOST)
    assert states(plan)["a"] == "cancelled"
    assert take_all(plan) == []


def test_nothing_new_begins_after_a_stop_though_nothing_was_found_out() -> None:
    plan = begun(step("a"), step("b"), on_failure="stop")
    take_all(plan)
    end(plan, "a", WRONG)
    end(plan, "b", LOST)
    assert states(plan) == {"a": "failed", "b": "failed"}


def test_a_passed_check_says_so() -> None:
    plan = begun(step("a"))
    take_all(plan)
    end(plan, "a", StepEnd("succeeded", validation=Validation("passed").found))
    assert only(plan) == ("succeeded", 0, 0, "passed")
