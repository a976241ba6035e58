"""What becomes of a job whose agent asked a person."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from forge_actors.domain.agents import AgentReport, Final, LimitHit, Progress, Question
from forge_actors.domain.agents import Told as Telling
from forge_actors.domain.backoff import DEFAULT
from forge_actors.domain.jobs import Job
from forge_actors.domain.launch import ProcessIdentity, Receipt
from forge_actors.domain.recovery import Evidence, decide

ASKED = AgentReport("claude", ok=True, text="?", acted=True, question="Which?")


def job() -> Job:
    return Job(
        id="job",
        repo="repo",
        kind="agent-run",
        priority=2,
        claims=(),
        tokens=(),
        queued_at=0.0,
        state="running",
        attempt=1,
        fence=1,
    )


def receipt(told: AgentReport = ASKED, **fields: Any) -> Receipt:
    values: dict[str, Any] = {"exit_code": 0, "agent": told, "started_at": 1.0}
    return Receipt("job", 1, 1, **{"ending": "exit", "ended_at": 9.0} | values | fields)


def state_of(ended: Receipt, **fields: Any) -> tuple[str, str | None]:
    outcome = decide(job(), Evidence(ended, **fields), DEFAULT)
    return outcome.state, None if outcome.error is None else outcome.error.code


def test_a_question_parks_the_job_and_uses_no_attempt() -> None:
    outcome = decide(job(), Evidence(receipt()), DEFAULT)
    assert (outcome.state, outcome.uncounted) == ("waiting_for_approval", True)
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.message) == ("QUESTION", "Which?")


def test_where_nobody_is_there_to_be_asked_the_job_fails() -> None:
    assert state_of(receipt(), attended=False) == ("failed", "QUESTION")


@pytest.mark.parametrize(
    ("ended", "fields", "state"),
    [
        (receipt(structs.replace(ASKED, question=None)), {}, "succeeded"),
        (receipt(), {"stopped": "cancelled"}, "succeeded"),
        (
            receipt(remaining=(ProcessIdentity("boot", 7, 7),)),
            {},
            "orphaned",
        ),
        (
            receipt(structs.replace(ASKED, ok=None), exit_code=None, signal="SIGKILL"),
            {},
            "human_attention_required",
        ),
        (
            receipt(
                structs.replace(ASKED, ok=False, limit=LimitHit("budget", own=True))
            ),
            {},
            "failed",
        ),
    ],
)
def test_what_else_it_came_to_counts_more(
    ended: Receipt, fields: dict[str, Any], state: str
) -> None:
    assert state_of(ended, **fields)[0] == state


def test_an_agent_that_goes_on_by_itself_has_asked_nothing() -> None:
    told = Telling("claude")
    told.take(Question("Which?"), 1)
    told.take(Progress("I take the first."), 2)
    report = told.report(noise="", unread=0, stopped_at=None)
    assert report.question == "Which?"
    told.take(Progress("uses Bash", acted=True), 3)
    told.take(Final("done", ok=True), 4)
    assert told.report(noise="", unread=0, stopped_at=None).question is None
