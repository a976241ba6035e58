"""An agent's exit code alone does not decide what its job came to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.domain.agents import AgentReport, LimitHit, Usage
from forge_actors.domain.backoff import Backoff
from forge_actors.domain.jobs import Job
from forge_actors.domain.launch import Receipt
from forge_actors.domain.recovery import Evidence, decide

if TYPE_CHECKING:
    from forge_actors.domain.jobs import Replay
    from forge_actors.domain.recovery import Outcome, StopReason

GOOD = AgentReport("claude", ok=True, text="done")
LATE = AgentReport("copilot", ok=True, text="done", in_time=False)


def outcome(
    told: AgentReport,
    *,
    stopped: StopReason | None = None,
    replay: Replay = "never",
    tokens: tuple[str, ...] = (),
    attempt: int = 1,
    **end: Any,
) -> Outcome:
    job = Job(
        id="j",
        repo="r",
        kind="agent-run",
        priority=2,
        claims=(),
        tokens=tokens,
        queued_at=0.0,
        state="running",
        attempt=attempt,
        fence=1,
        replay=replay,
    )
    end = {"ending": "exit", "exit_code": 0, **end}
    receipt = Receipt(
        job="j",
        attempt=attempt,
        fence=1,
        ended_at=2.0,
        started_at=1.0,
        agent=told,
        **end,
    )
    return decide(job, Evidence(receipt, stopped), Backoff())


def test_a_good_end_and_exit_0_is_success() -> None:
    assert outcome(GOOD).state == "succeeded"


@pytest.mark.parametrize("ending", ["stop", "cancel", "wall", "idle", "owner"])
def test_one_that_we_ended_after_its_good_end_has_succeeded(ending: str) -> None:
    end = outcome(GOOD, ending=ending, exit_code=None, signal="SIGTERM")
    assert end.state == "succeeded"


@pytest.mark.parametrize(
    ("ending", "state"),
    [
        ("wall", "timed_out"),
        ("cancel", "cancelled"),
        ("stop", "human_attention_required"),
    ],
)
def test_an_end_that_it_told_because_of_the_stop_is_none(
    ending: str, state: str
) -> None:
    assert outcome(LATE, ending=ending, exit_code=None, signal="SIGTERM").state == state


def test_a_signal_of_someone_else_after_a_good_end_is_no_success() -> None:
    end = outcome(GOOD, exit_code=None, signal="SIGKILL")
    assert end.state == "human_attention_required"
    assert end.error is not None
    assert end.error.code == "INTERRUPTED"


def test_exit_0_without_a_final_event_is_an_interruption() -> None:
    end = outcome(AgentReport("claude"))
    assert end.state == "human_attention_required"
    assert end.error is not None
    assert end.error.code == "INTERRUPTED"
    assert outcome(AgentReport("claude"), replay="safe").again


@pytest.mark.parametrize(
    ("told", "exit_code", "code"),
    [
        (AgentReport("claude", ok=False, text="no"), 0, "AGENT_FAILED"),
        (AgentReport("claude", ok=False, text="no"), 1, "EXIT_NONZERO"),
        (AgentReport("claude", ok=True), 0, "EMPTY_RESULT"),
        (AgentReport("claude", ok=True, text=" \n"), 0, "EMPTY_RESULT"),
        (GOOD, 3, "EXIT_NONZERO"),
        (AgentReport("claude"), 3, "EXIT_NONZERO"),
        (AgentReport("c", limit=LimitHit("auth")), 1, "PROVIDER_AUTH"),
        (AgentReport("c", ok=False, limit=LimitHit("budget")), 1, "BUDGET_SPENT"),
    ],
)
def test_each_failure_has_a_code_of_its_own(
    told: AgentReport, exit_code: int, code: str
) -> None:
    end = outcome(told, exit_code=exit_code)
    assert end.state == "failed"
    assert end.error is not None
    assert end.error.code == code


def test_a_limit_that_the_job_itself_was_given_ends_it() -> None:
    told = AgentReport("c", ok=False, limit=LimitHit("budget", own=True))
    end = outcome(told, exit_code=1, tokens=("provider:c",))
    assert (end.state, end.error and end.error.code) == ("failed", "BUDGET_SPENT")


def test_one_that_did_something_need_not_say_anything() -> None:
    assert outcome(AgentReport("codex", ok=True, acted=True)).state == "succeeded"


def test_what_failed_before_we_ended_it_is_why_it_failed() -> None:
    told = AgentReport("claude", ok=False, text="it broke")
    end = outcome(told, ending="stop", exit_code=None, signal="SIGTERM")
    assert end.state == "failed"
    assert end.error is not None
    assert end.error.code == "AGENT_FAILED"
    assert "it broke" in end.error.message


def test_what_is_unknown_of_usage_stays_unknown() -> None:
    known = Usage(100, 10, None, None) + Usage(20, 1, None, 0.5)
    assert known == Usage(120, 11, None, 0.5)
    assert Usage(240, 14).since(Usage(120, 7, 0)) == Usage(120, 7)


def test_a_session_that_is_gone_is_begun_anew_whatever_the_replay_policy() -> None:
    told = AgentReport("claude", ok=False, session_gone=True)
    for attempt, state in ((1, "queued"), (3, "queued"), (4, "failed")):
        end = outcome(told, exit_code=1, attempt=attempt)
        assert end.state == state
        assert end.error is not None
        assert end.error.code == "SESSION_GONE"
    cancelled = outcome(told, ending="cancel", exit_code=1)
    assert cancelled.state == "cancelled"


@pytest.mark.parametrize("replay", ["never", "safe", "always"])
@pytest.mark.parametrize("attempt", [1, 3])
def test_one_that_was_ended_for_a_spent_budget_has_failed(
    replay: Replay, attempt: int
) -> None:
    told = AgentReport("claude", spent="all is used", stopped_for_budget=True)
    end = {"ending": "stop", "exit_code": None, "signal": "SIGTERM"}
    found = outcome(told, replay=replay, attempt=attempt, **end)
    assert found.state == "failed"
    assert found.error is not None
    assert found.error.code == "BUDGET_SPENT"
    cancelled = outcome(told, replay=replay, stopped="cancelled", **end)
    assert cancelled.state == "cancelled"


def test_no_other_attempt_follows_where_the_job_has_spent_its_budget() -> None:
    told = AgentReport("claude", spent="all is used")
    end = {"ending": "stop", "exit_code": None, "signal": "SIGTERM"}
    assert outcome(told, replay="safe", **end).state == "failed"
    # It was not ended for that, so what it did is what a person has to look at.
    assert outcome(told, replay="never", **end).state == "human_attention_required"
    good = AgentReport("claude", ok=True, text="done", spent="all is used")
    assert outcome(good).state == "succeeded"
