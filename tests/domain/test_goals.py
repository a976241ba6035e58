"""When a goal goes on, is reached, goes in circles or is given up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.domain.errors import NotFound, Refused
from forge_actors.domain.goals import Goal
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.rounds import Marks, Round, Terms, decide
from forge_actors.domain.workflow_definitions import Definition, StepDefinition
from forge_actors.domain.workflow_steps import Step, StepEnd
from forge_actors.domain.workflows import MAX_UNDECIDED

if TYPE_CHECKING:
    from forge_actors.domain.jobs import State
    from forge_actors.domain.rounds import Turn

JOB = JobRequest(repo="app", argv=["true"])


def good(number: int, likeness: str | None = None, **fields: Any) -> Round:
    """A round whose check failed."""
    return Round(number, acted=True, why="exit 1", likeness=likeness, **fields)


def bad(number: int) -> Round:
    return Round(number, acted=False, why="exit 9")


@pytest.mark.parametrize(
    ("terms", "rounds", "seconds", "what", "why"),
    [
        ({}, [good(1)], 0, "go on", ""),
        ({}, [Round(1, acted=True, passed=True)], 0, "done", "passed in round 1"),
        # What is reached is reached, whatever it took.
        ({"seconds": 5}, [Round(1, acted=True, passed=True)], 9, "done", "round 1"),
        ({"rounds": 2}, [good(1), good(2)], 61, "spent", "2 rounds are over (2 rounds"),
        ({"rounds": 1}, [good(1)], 0, "spent", "only round is over (1 round, 0 s)"),
        ({"rounds": 2}, [good(1), bad(2)], 0, "spent", "exit 9"),
        ({"rounds": 3}, [good(1), good(2)], 0, "go on", ""),
        ({"seconds": 7200}, [good(1)], 7200, "spent", "its 2 h 0 min are over"),
        ({"seconds": 7200}, [good(1)], 7199, "go on", ""),
        ({"tokens": 10}, [good(1, tokens=6), good(2, tokens=4)], 0, "spent", "10 tok"),
        ({"tokens": 10}, [good(1, tokens=6), good(2, tokens=3)], 0, "go on", ""),
        ({"cost": 1.5}, [good(1, cost=1.0), good(2, cost=0.5)], 0, "spent", "$1.50"),
        ({"cost": 1.5}, [good(1, cost=1.0), good(2, cost=0.4)], 0, "go on", ""),
        ({}, [good(1, "a"), good(2, "a")], 0, "stuck", "rounds 1, 2"),
        ({}, [good(1, "a"), good(2, "b")], 0, "go on", ""),
        # Back and forth is a circle too.
        ({}, [good(1, "a"), good(2, "b"), good(3, "a")], 0, "stuck", "rounds 1, 3"),
        ({"repeats": 3}, [good(1, "a"), good(2, "a")], 0, "go on", ""),
        ({"repeats": 3}, [good(n, "a") for n in (1, 2, 3)], 0, "stuck", "1, 2, 3"),
        # Nobody can tell whether these are alike.
        ({}, [good(1), good(2)], 0, "go on", ""),
        ({}, [good(1, "a"), good(2, "a", passed=True)], 0, "done", "round 2"),
        ({}, [bad(1), bad(2)], 0, "go on", ""),
        ({}, [bad(1), bad(2), bad(3)], 0, "stuck", "failed 3 times in a row: exit 9"),
        ({}, [bad(1), bad(2), good(3), bad(4)], 0, "go on", ""),
        ({"failures": 1}, [bad(1)], 0, "stuck", "its act failed once"),
        ({}, [good(1, blind=True)], 0, "stuck", "found nothing out: exit 1"),
        # A person has to look at a circle though it was the last round.
        ({"rounds": 2}, [good(1, "a"), good(2, "a")], 0, "stuck", "circles"),
        ({"seconds": 5}, [good(1, "a"), good(2, "a")], 5, "spent", "5 s are over"),
    ],
)
def test_what_comes_after_a_round(
    terms: dict[str, Any], rounds: list[Round], seconds: float, what: str, why: str
) -> None:
    decision = decide(Terms(**terms), rounds, seconds)
    assert decision.what == what
    assert why in decision.why


class Played:
    """A goal that is played to its end, loaded anew from its steps before each move."""

    def __init__(self, **terms: Any) -> None:
        steps = (StepDefinition("act", "r", JOB), StepDefinition("check", "r", JOB))
        self.definition = Definition("mend", "goal", steps, goal=Terms(**terms))
        self.saved: dict[str, Step] = {}
        self.now = 100.0

    @property
    def goal(self) -> Goal:
        known = sorted(self.saved.values(), key=lambda step: step.number)
        return Goal(self.definition, known)

    def keep(self, steps: list[Step]) -> None:
        self.saved.update({step.name: step for step in steps})

    def turn(self) -> Turn:
        goal = self.goal
        step = goal.take()
        assert step is not None
        turn = goal.define(step.name).turn
        assert turn is not None
        return turn

    def begin(self) -> str:
        goal = self.goal
        step = goal.take()
        assert step is not None, goal.verdict
        assert goal.take() is None
        self.keep(goal.submitted(step, f"job-{step.name}-{step.tries + 1}", self.now))
        return step.name

    def end(self, state: State = "succeeded", **fields: Any) -> str:
        """The next step has its job, which ends a second later."""
        name = self.begin()
        self.now += 1.0
        goal = self.goal
        end = StepEnd(state, **fields)
        self.keep(goal.ended(goal.by_name[name], end, self.now))
        return name

    @property
    def states(self) -> dict[str, str]:
        return {step.name: step.state for step in self.goal.steps}


def test_a_goal_is_reached_in_its_third_round() -> None:
    played = Played()
    for number in (1, 2):
        assert played.end() == f"act-{number}"
        assert played.end("failed", why="exit 1") == f"check-{number}"
    assert played.turn().before == ("job-act-2-1", "job-act-1-1")
    assert played.turn().check == "job-check-2-1"
    assert (played.turn().round, played.turn().why) == (3, "exit 1")
    played.end()
    assert played.goal.verdict is None
    assert played.goal.define("check-3").after == ("act-3",)
    assert played.goal.define("check-3").values == {"round": "3"}
    played.end()
    verdict = played.goal.verdict
    assert verdict is not None
    assert (verdict.state, verdict.why) == ("succeeded", "the check passed in round 3")


def test_an_act_that_fails_is_not_checked_and_the_next_is_told_why() -> None:
    played = Played(failures=2)
    assert played.end("failed", why="exit 9") == "act-1"
    turn = played.turn()
    assert (turn.role, turn.round, turn.why, turn.check) == ("act", 2, "exit 9", None)
    assert played.end("failed", why="exit 8") == "act-2"
    verdict = played.goal.verdict
    assert verdict is not None
    assert verdict.state == "human_attention_required"


def test_its_jobs_may_use_what_is_left() -> None:
    played = Played(seconds=60, tokens=100, cost=2.0)
    turn = played.turn()
    assert (turn.until, turn.seconds, turn.tokens, turn.cost) == (None, 60, 100, 2.0)
    played.end(marks=Marks(tokens=30, cost=0.5))
    played.end("failed")
    turn = played.turn()
    assert (turn.until, turn.tokens, turn.cost) == (160.0, 70, 1.5)


def test_what_found_nothing_out_is_tried_again_and_counts_for_nothing() -> None:
    played = Played()
    played.end()
    for _ in range(MAX_UNDECIDED - 1):
        assert played.end("failed", why="lost", retryable=True) == "check-1"
        assert played.goal.verdict is None
    step = played.saved["check-1"]
    assert (step.tries, step.failures) == (MAX_UNDECIDED - 1, 0)
    played.end("failed", why="lost", retryable=True)
    verdict = played.goal.verdict
    assert verdict is not None
    assert verdict.state == "human_attention_required"
    assert verdict.why is not None
    assert "found nothing out: lost" in verdict.why


def test_what_is_tried_again_adds_to_what_was_used() -> None:
    played = Played(tokens=100)
    played.end("failed", retryable=True, marks=Marks(tokens=60))
    turn = played.turn()
    assert (turn.round, turn.tokens) == (1, 40)
    assert turn.before == ("job-act-1-1",), "it goes on with itself"
    played.end("failed", marks=Marks(tokens=40))
    verdict = played.goal.verdict
    assert verdict is not None
    assert verdict.state == "failed"


def test_nothing_is_tried_again_when_the_time_is_over() -> None:
    played = Played(seconds=1)
    played.end("failed", why="it ran too long", retryable=True)
    verdict = played.goal.verdict
    assert verdict is not None
    assert (verdict.state, played.states) == ("failed", {"act-1": "failed"})


def test_a_job_that_is_refused_is_a_failure_and_one_of_a_check_is_for_a_person() -> (
    None
):
    played = Played(failures=2)
    goal = played.goal
    step = goal.take()
    assert step is not None
    played.keep(goal.refused(step, "no such repository", 1.0))
    assert played.states == {"act-1": "failed", "act-2": "waiting"}
    played.end()
    goal = played.goal
    step = goal.take()
    assert step is not None
    played.keep(goal.refused(step, "no such folder", 1.0))
    verdict = played.goal.verdict
    assert verdict is not None
    assert verdict.state == "human_attention_required"


def test_a_goal_that_is_cancelled_begins_nothing_more() -> None:
    played = Played()
    name = played.begin()
    goal = played.goal
    assert goal.cancel(1.0) == []
    played.keep(goal.ended(goal.by_name[name], StepEnd("succeeded"), 2.0))
    assert played.states == {"act-1": "succeeded", "check-1": "cancelled"}
    verdict = played.goal.verdict
    assert verdict is not None
    assert verdict.state == "cancelled"


def test_a_step_that_was_taken_when_it_is_cancelled_is_given_back() -> None:
    played = Played()
    goal = played.goal
    step = goal.take()
    assert step is not None
    assert goal.cancel(1.0) == []
    played.keep(goal.give_back(step, 2.0))
    assert played.states == {"act-1": "cancelled"}


def test_a_job_that_somebody_cancels_ends_the_goal() -> None:
    played = Played()
    played.end("cancelled")
    verdict = played.goal.verdict
    assert verdict is not None
    assert (verdict.state, verdict.why) == ("cancelled", "job job-act-1-1 cancelled")


def test_begun_anew_it_has_its_budgets_again_and_knows_what_was() -> None:
    played = Played(rounds=1, tokens=100, seconds=50)
    played.end(marks=Marks(tokens=90))
    played.end("failed", why="exit 1", marks=Marks(likeness="a"))
    played.now = 1000.0
    verdict = played.goal.verdict
    assert verdict is not None
    assert verdict.state == "failed"
    with pytest.raises(Refused, match="as a whole"):
        played.goal.retry(["act-1"])
    played.keep(played.goal.retry([]))
    turn = played.turn()
    assert (turn.number, turn.round, turn.tokens, turn.until) == (2, 1, 100, None)
    assert (turn.before, turn.check) == (("job-act-1-1",), "job-check-1-1")
    played.end(marks=Marks(tokens=10))
    assert played.saved["act-2"].marks == Marks(tokens=10, anew=True)
    played.end("failed", why="exit 1", marks=Marks(likeness="a"))
    verdict = played.goal.verdict
    assert verdict is not None
    assert verdict.state == "failed", "it was the first of its kind since"
    assert [each.number for each in played.goal.rounds] == [2]
    with pytest.raises(Refused, match="asks nothing"):
        played.goal.answer("act-1", yes=True, now=1.0)
    with pytest.raises(NotFound):
        played.goal.answer("act-9", yes=True, now=1.0)


def test_a_goal_that_is_reached_is_not_begun_anew() -> None:
    played = Played()
    played.end()
    played.end()
    with pytest.raises(Refused, match="no step of it failed"):
        played.goal.retry([])
