"""The steps of a job whose work is checked: every ending of each, and its bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from forge_actors.domain.agents import AgentReport, LimitHit, Usage
from forge_actors.domain.backoff import Backoff
from forge_actors.domain.jobs import MOVES, REPLAYS
from forge_actors.domain.recovery import Evidence, decide
from forge_actors.domain.verifying import (
    CheckReport,
    Verify,
    asked_for,
    report_of,
    verify_view,
)
from tests.domain.making import IDENTITY, make_job, make_receipt

if TYPE_CHECKING:
    from forge_actors.domain.jobs import Job, Replay
    from forge_actors.domain.launch import Receipt
    from forge_actors.domain.recovery import Outcome, StopReason

BACKOFF = Backoff(first=2.0, longest=60.0)
ASKED = Verify("make test", 60.0, 2)
TOLD = AgentReport("claude", "s", ok=True, text="done", usage=Usage(10, 7))
WORKED = structs.replace(make_receipt(exit_code=0), agent=TOLD)


def working(attempt: int = 1, verify: Verify = ASKED, replay: Replay = "never") -> Job:
    job = make_job(
        "a",
        kind="agent-run",
        provider="claude",
        state="running",
        attempt=attempt,
        replay=replay,
    )
    job.agent, job.verify = "claude", verify
    return job


def after(job: Job, receipt: Receipt | None, **known: object) -> Outcome:
    return decide(job, Evidence(receipt, **known), BACKOFF)  # type: ignore[arg-type]


def checked(job: Job, attempts: int = 1) -> Job:
    """The job in the attempt of the check that follows its work."""
    step = after(job, WORKED).verify
    assert step is not None
    assert step.checking
    found = working(job.attempt + attempts, step, job.replay)
    assert found.counted == attempts
    return found


def failed(
    code: int = 2, likeness: str | None = None, spent: str | None = None
) -> Receipt:
    report = CheckReport("a test failed", likeness, spent)
    return structs.replace(make_receipt(exit_code=code), check=report)


def test_good_work_is_checked_next() -> None:
    outcome = after(working(), WORKED)
    assert (outcome.state, outcome.error) == ("waiting_for_heavy_check", None)
    assert outcome.verify is not None
    assert outcome.verify.tokens == ("workers", "agents", "provider:claude")
    assert outcome.verify.work == TOLD
    assert outcome.state in MOVES["running"]


@pytest.mark.parametrize(
    ("receipt", "state"),
    [
        (make_receipt(exit_code=7), "failed"),
        (structs.replace(WORKED, agent=structs.replace(TOLD, ok=False)), "failed"),
        (structs.replace(WORKED, ending="cancel"), "cancelled"),
        (structs.replace(WORKED, remaining=(IDENTITY,)), "orphaned"),
        (make_receipt("lost"), "human_attention_required"),
        (
            structs.replace(WORKED, agent=structs.replace(TOLD, question="Which?")),
            "waiting_for_approval",
        ),
        (
            structs.replace(
                make_receipt(exit_code=1),
                agent=AgentReport("claude", ok=False, limit=LimitHit("usage")),
            ),
            "waiting_for_limit",
        ),
    ],
)
def test_work_that_is_not_good_is_not_checked(receipt: Receipt, state: str) -> None:
    outcome = after(working(), receipt)
    assert (outcome.state, outcome.verify) == (state, None)


def test_work_that_was_cancelled_is_not_checked_though_it_is_good() -> None:
    assert after(working(), WORKED, stopped="cancelled").state == "cancelled"
    assert after(working(), WORKED, stopped="shutdown").verify is not None


def test_a_check_that_passes_is_the_success() -> None:
    outcome = after(checked(working()), make_receipt(exit_code=0))
    assert (outcome.state, outcome.error, outcome.verify) == ("succeeded", None, None)


@pytest.mark.parametrize("replay", REPLAYS)
@pytest.mark.parametrize(
    ("receipt", "how"),
    [
        (failed(2), "exit status 2"),
        (make_receipt("wall", signal="SIGTERM"), "it ran longer than it may"),
        (
            make_receipt(signal="SIGKILL", out_of_memory=True),
            "it used more memory than it may",
        ),
    ],
)
def test_a_check_that_fails_begins_a_round(
    receipt: Receipt, how: str, replay: Replay
) -> None:
    outcome = after(checked(working(replay=replay)), receipt)
    assert outcome.state == "queued"
    assert outcome.error is not None
    assert outcome.error.code == "VERIFY_FAILED"
    assert f"{how}; round 1 of 2" in outcome.error.message
    step = outcome.verify
    assert step is not None
    assert (step.checking, step.round, step.failed) == (False, 1, how)
    assert step.checks == (2,)
    assert step.tokens == ()


@pytest.mark.parametrize("replay", REPLAYS)
@pytest.mark.parametrize(
    ("receipt", "stopped"),
    [
        (None, None),
        (make_receipt("lost"), None),
        (make_receipt("lost", began=False), None),
        (make_receipt("stop", signal="SIGTERM"), "shutdown"),
        (make_receipt("owner", signal="SIGKILL"), None),
        (make_receipt(signal="SIGSEGV"), None),
        (make_receipt(), None),
    ],
)
def test_a_check_that_was_interrupted_is_repeated_and_begins_no_round(
    receipt: Receipt | None, stopped: StopReason | None, replay: Replay
) -> None:
    job = checked(working(replay=replay))
    outcome = after(job, receipt, stopped=stopped, overdue=True)
    assert outcome.state == "waiting_for_retry"
    assert outcome.verify is None


def test_interruptions_of_a_check_are_bounded_and_its_own() -> None:
    """Those of the work do not count among them."""
    job = checked(working(3), attempts=3)
    assert after(job, make_receipt("lost")).state == "failed"
    died = after(job, make_receipt(signal="SIGSEGV"))
    assert died.verify is not None
    assert died.verify.failed == "SIGSEGV ended it"


def test_a_check_that_is_cancelled_or_leaves_something_ends_so() -> None:
    job = checked(working())
    assert after(job, failed(), stopped="cancelled").state == "cancelled"
    left = structs.replace(failed(), remaining=(IDENTITY,))
    assert after(job, left).state == "orphaned"
    broken = make_receipt("spawn", began=False, error="no such folder")
    assert after(job, broken).state == "failed"


def rounds(*reports: Receipt) -> Outcome:
    """What becomes of a job whose checks fail like this, one after the other."""
    job = working()
    for receipt in reports:
        job = checked(job)
        outcome = after(job, receipt)
        if outcome.verify is None:
            break
        job = working(job.attempt + 1, outcome.verify)
    return outcome


def test_rounds_are_bounded() -> None:
    last = rounds(failed(1, "a"), failed(2, "b"), failed(3, "c"))
    assert last.state == "failed"
    assert last.error is not None
    assert last.error.code == "VERIFY_FAILED"
    assert last.error.message == (
        "its check failed, exit status 3; the last of 2 rounds of mending is over"
        "\na test failed"
    )


def test_the_same_failure_of_the_same_files_ends_it_early() -> None:
    last = rounds(failed(1, "a"), failed(1, "a"))
    assert last.error is not None
    assert last.state == "failed"
    assert "round 1 changed nothing" in last.error.message
    assert rounds(failed(1, "a"), failed(1, "b")).state == "queued"
    assert rounds(failed(1, None), failed(1, None)).state == "queued"


def test_a_spent_budget_ends_it() -> None:
    last = rounds(failed(1, spent="5 of 5 tokens are used"))
    assert last.state == "failed"
    assert last.error is not None
    assert "its budget is spent: 5 of 5 tokens" in last.error.message


def test_attempts_of_each_step_count_for_themselves() -> None:
    """A job that may be interrupted three times may be so in each of its steps."""
    job = checked(working(3, replay="safe"), attempts=2)
    outcome = after(job, failed())
    assert outcome.verify is not None
    job = working(job.attempt + 1, outcome.verify, "safe")
    assert job.counted == 1
    assert after(job, make_receipt("lost")).state == "waiting_for_retry"
    assert outcome.verify.checks == (4, 5)
    assert [n for n in range(1, 9) if outcome.verify.is_check(n)] == [4, 5]


def test_what_the_agent_told_is_kept_and_its_usage_added_up() -> None:
    job = checked(working())
    mend = after(job, failed()).verify
    assert mend is not None
    again = structs.replace(TOLD, text="mended", usage=Usage(1, None))
    receipt = structs.replace(WORKED, agent=again)
    step = after(working(3, mend), receipt).verify
    assert step is not None
    assert report_of(step, None) == structs.replace(again, usage=Usage(11, 7))
    # Of one that is interrupted in its second round, both are told.
    assert report_of(mend, again) == structs.replace(again, usage=Usage(11, 7))
    assert report_of(ASKED, again) == again
    assert report_of(None, None) is None


def test_a_job_made_anew_has_done_nothing() -> None:
    job = checked(working())
    assert job.verify is not None
    assert asked_for(job.verify) == ASKED
    assert verify_view(job.verify, 2) == {
        "command": "make test",
        "timeout": 60.0,
        "step": "check",
        "round": 0,
        "rounds": 2,
        "checks": [2],
    }
