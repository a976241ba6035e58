"""What people ask of the jobs of a repository, and when they are answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import pytest
from msgspec import structs

from forge_actors.actors.asked import Asked
from forge_actors.actors.moves import Moves
from forge_actors.actors.repository_messages import AnswerJob, ApproveJob, EditJob
from forge_actors.domain.admissions import AdmissionWanted
from forge_actors.domain.changes import JobAnswered, JobApproved, JobEnded
from forge_actors.domain.edits import Edit
from forge_actors.domain.effects import Approval
from forge_actors.domain.errors import Outdated
from forge_actors.domain.jobs import JobSpec
from forge_actors.domain.ledger import Ledger
from forge_actors.domain.poison import Poison
from forge_actors.domain.quarantine import Quarantine
from tests.domain.making import IDENTITY, dispatch_any, make_job

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from forge_actors.domain.changes import Change

A = TypeVar("A")
NOW = 50.0
APPROVAL = Approval("asks", ("push",), "ann", "page", NOW)


class Said(Generic[A]):
    """A reply that keeps what it is given."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def answer(self, value: A) -> bool:
        self.told.append(value)
        return True

    def refuse(self, error: Exception) -> bool:
        self.told.append(f"{type(error).__name__}: {error}")
        return True


class Case:
    """One repository's part for what is asked, with nobody who works."""

    def __init__(self, *poisoned: Poison) -> None:
        self.moves: list[tuple[Change, ...]] = []
        self.thens: list[Callable[[], object]] = []
        self.stopped: list[tuple[object, ...]] = []
        self.suspended: list[frozenset[str]] = []
        self.withdrawn = 0
        self.being_stopped: set[str] = set()
        self.admission: AdmissionWanted | None = None
        left = Quarantine("left", "repo", 1, 1, (), (IDENTITY,), "it stays", 1.0)
        self.ledger = Ledger("repo", poisoned=poisoned, quarantined=[left])
        self.saves = Moves(cast("Any", self))
        self.asked = Asked(
            cast("Any", self), self.ledger, cast("Any", self), self.saves
        )

    # the store

    def save(self, changes: Any, *, then: Any, lazy: bool) -> None:
        assert not lazy
        self.moves.append(tuple(changes))
        self.thens.append(then)

    def spec(self, job: str) -> JobSpec:
        assert job in self.ledger.jobs
        return JobSpec(argv=("true",), cwd="/", admission=self.admission)

    # the attempts

    def stop(self, *told: object) -> None:
        self.stopped.append(told)

    def is_stopped(self, job: str) -> bool:
        return job in self.being_stopped

    def suspend(self, jobs: Collection[str]) -> None:
        self.suspended.append(frozenset(jobs))

    def withdraw_all(self) -> None:
        self.withdrawn += 1

    # what a test does

    def add(self, name: str, **fields: Any) -> None:
        self.ledger.add(make_job(name, **fields), (), 0.0)

    def run(self, name: str) -> None:
        self.add(name)
        assert dispatch_any(self.ledger, 1.0) == name

    def reply(self) -> Any:
        return Said[Any]()

    def durable(self) -> list[Change]:
        """Save what there is, and have it become durable; what it was."""
        self.saves.save()
        made = [change for move in self.moves for change in move]
        for then in self.thens:
            then()
        self.moves, self.thens = [], []
        return made

    def kinds(self) -> list[str]:
        return [one.event.kind for one in self.durable() if one.event is not None]


def asking(**fields: Any) -> Case:
    """One with a job that asks for approval, or a person, after its attempts."""
    case = Case()
    case.add("asks", state="waiting_for_approval", **fields)
    return case


def test_a_job_that_waits_is_cancelled_once_that_is_durable() -> None:
    case = Case()
    case.add("a")
    reply = case.reply()
    case.asked.cancel(("a",), None, reply, NOW)
    assert reply.told == []
    [end] = case.durable()
    assert isinstance(end, JobEnded)
    assert (end.job, end.state) == ("a", "cancelled")
    assert end.event is not None
    assert end.event.at == NOW
    assert reply.told == [[]], "none of them runs"
    assert case.stopped == []


@pytest.mark.parametrize("grace", [None, 3.0])
def test_one_that_runs_is_stopped_with_the_time_it_is_given(
    grace: float | None,
) -> None:
    case = Case()
    case.run("a")
    case.add("b")
    case.ledger.steer("a", "pause", 2.0)
    reply = case.reply()
    case.asked.cancel(("gone", "a", "b"), grace, reply, NOW)
    attempt = case.ledger.jobs["a"].attempt
    assert case.stopped == [("a", attempt, "cancelled", grace)]
    # It goes on, so that it can act on the stop.
    events = [one.event for one in case.durable() if one.event is not None]
    assert sorted((event.kind, event.at) for event in events) == [
        ("job_cancelled", NOW),
        ("job_resumed", NOW),
    ]
    assert reply.told == [["a"]]


def test_where_nothing_changes_the_answer_comes_at_once() -> None:
    case = Case()
    case.run("a")
    reply = case.reply()
    case.asked.cancel(("a",), None, reply, NOW)
    assert reply.told == [["a"]]
    other = case.reply()
    case.asked.cancel(("gone",), None, other, NOW)
    assert other.told == [[]]


def test_one_that_was_set_aside_is_told_of_only_if_it_is_asked_for_alone() -> None:
    case = Case(Poison("repo", "it failed", 1.0, "bad"))
    case.add("a")
    reply, both = case.reply(), case.reply()
    case.asked.cancel(("bad",), None, reply, NOW)
    assert reply.told == [
        "Refused: job bad was set aside, see: forge-actors why bad",
    ]
    case.asked.cancel(("bad", "a"), None, both, NOW)
    assert case.kinds() == ["job_cancelled"]
    assert both.told == [[]]


def test_all_that_can_be_steered_is_and_the_others_say_why_not() -> None:
    case = Case(Poison("repo", "it failed", 1.0, "bad"))
    case.run("runs")
    case.add("a")
    case.add("stops")
    case.being_stopped = {"stops"}
    reply = case.reply()
    case.asked.steer(("bad", "gone", "stops", "runs", "a"), "hold", reply, NOW)
    held = case.ledger.jobs["a"]
    assert held.held_at == NOW
    assert reply.told == []
    assert case.kinds() == ["job_held"]
    [problems] = reply.told
    assert list(problems) == ["bad", "gone", "stops", "runs"]
    assert problems["gone"] == "job gone has ended"
    assert problems["stops"] == "job stops is being stopped"
    assert "set aside" in problems["bad"]
    assert "hold is for jobs that wait" in problems["runs"]


def test_a_pause_is_told_to_who_works_before_it_is_saved() -> None:
    case = Case()
    case.run("a")
    reply = case.reply()
    case.asked.steer(("a",), "pause", reply, NOW)
    assert case.suspended == [frozenset({"a"})]
    assert reply.told == []
    assert case.kinds() == ["job_paused"]
    assert reply.told == [{}]
    case.asked.steer(("a",), "resume", case.reply(), NOW)
    assert case.suspended[-1] == frozenset()


def test_what_lasts_until_it_ends_by_itself_cannot_be_paused() -> None:
    case = Case()
    case.admission = AdmissionWanted("epic:1", 7)
    case.run("runs")
    case.add("waits")
    reply = case.reply()
    case.asked.steer(("runs", "waits"), "pause", reply, NOW)
    case.durable()
    [problems] = reply.told
    assert list(problems) == ["runs"]
    assert "forge-actors cancel runs" in problems["runs"]
    assert case.suspended[-1] == frozenset()


def edit_of(reply: Any, unchanged: Any = None) -> EditJob:
    return EditJob("a", Edit(priority=0), reply, unchanged)


def test_an_edit_is_answered_once_it_is_durable() -> None:
    case = Case()
    case.add("a")
    reply = case.reply()
    case.asked.of_waiting(edit_of(reply), NOW)
    assert case.ledger.jobs["a"].priority == 0
    assert reply.told == []
    [change] = case.durable()
    assert change.event is not None
    assert (change.event.kind, change.event.at) == ("job_edited", NOW)
    assert reply.told == [None]


def test_an_edit_of_what_was_seen_needs_it_to_be_so_still() -> None:
    case = Case()
    case.add("a")
    case.asked.steer(("a",), "hold", case.reply(), NOW)
    seen: list[int] = []

    def unchanged() -> bool:
        seen.append(len(case.moves))
        return len(seen) > 1

    reply = case.reply()
    case.asked.of_waiting(edit_of(reply, unchanged), NOW)
    assert seen == [1], "what was handled before is with the store"
    assert reply.told == [f"Outdated: {Outdated('job a')}"]
    assert case.ledger.jobs["a"].priority == 2
    again = case.reply()
    case.asked.of_waiting(edit_of(again, unchanged), NOW)
    case.durable()
    assert case.ledger.jobs["a"].priority == 0
    assert again.told == [None]


def test_what_runs_or_has_ended_cannot_be_edited() -> None:
    case = Case()
    reply = case.reply()
    case.asked.of_waiting(edit_of(reply), NOW)
    assert reply.told == ["Refused: job a has ended"]
    case.run("a")
    reply = case.reply()
    case.asked.of_waiting(edit_of(reply), NOW)
    assert reply.told == [
        "Refused: job a runs: only a job that waits can be edited",
    ]
    assert case.durable() == []


def test_an_answer_lets_the_job_go_on_and_a_no_ends_it() -> None:
    case = asking(attempt=1)
    reply = case.reply()
    case.asked.of_waiting(AnswerJob("asks", "digest", "answered", reply), NOW)
    assert reply.told == []
    [change] = case.durable()
    assert isinstance(change, JobAnswered)
    assert (change.job, change.answer, change.attempt) == ("asks", "digest", 1)
    assert change.event is not None
    assert change.event.at == NOW
    assert change.event.data == {"reason": "answered"}
    assert reply.told == [None]
    assert case.ledger.jobs["asks"].state == "queued"
    case = asking(attempt=1)
    reply = case.reply()
    case.asked.of_waiting(AnswerJob("asks", None, "no", reply), NOW)
    [end] = case.durable()
    assert isinstance(end, JobEnded)
    assert (end.job, end.state) == ("asks", "failed")
    assert end.error is not None
    assert (end.error.code, end.error.message) == ("DENIED", "no")
    assert end.event is not None
    assert end.event.at == NOW
    assert reply.told == [None]


def test_what_asks_nothing_or_has_ended_is_not_answered() -> None:
    case = Case()
    case.add("a")
    for answer in ("digest", None):
        for job, why in (("a", "asks nothing"), ("gone", "job gone has ended")):
            reply = case.reply()
            case.asked.of_waiting(AnswerJob(job, answer, "r", reply), NOW)
            [told] = reply.told
            assert told.startswith("Refused: ")
            assert why in told
    assert case.durable() == []


def test_an_approval_queues_the_job_that_waits_for_it() -> None:
    case = asking()
    reply = case.reply()
    case.asked.of_waiting(ApproveJob("asks", APPROVAL, reply), NOW)
    assert reply.told == []
    [change] = case.durable()
    assert isinstance(change, JobApproved)
    assert (change.job, change.approval) == ("asks", APPROVAL)
    assert (change.state, change.event.kind) == ("queued", "job_queued")
    assert (change.event.repo, change.event.job) == ("repo", "asks")
    assert change.event.at == NOW
    assert change.event.data["effects"] == ("push",)
    assert (change.event.data["by"], change.event.data["how"]) == ("ann", "page")
    assert reply.told == [None]


def test_only_what_waits_for_it_is_approved() -> None:
    case = asking(attempt=1)
    for job in ("asks", "gone"):
        reply = case.reply()
        approval = structs.replace(APPROVAL, job=job)
        case.asked.of_waiting(ApproveJob(job, approval, reply), NOW)
        [told] = reply.told
        assert told.startswith("Refused: ")
        assert job in told
    case = asking()
    case.being_stopped = {"asks"}
    reply = case.reply()
    case.asked.of_waiting(ApproveJob("asks", APPROVAL, reply), NOW)
    assert reply.told == ["Refused: job asks is being stopped"]
    assert case.durable() == []


@pytest.mark.parametrize("jobs", [False, True])
def test_a_pause_of_all_keeps_what_was_not_begun_and_tells_who_works(
    jobs: bool,
) -> None:
    case = Case()
    case.run("a")
    reply = case.reply()
    case.asked.pause(True, jobs, reply, NOW)
    assert case.withdrawn == 1
    assert case.suspended == [frozenset({"a"} if jobs else ())]
    assert reply.told == []
    assert {one.event and one.event.at for one in case.durable()} == {NOW}
    assert reply.told == [None]
    other = case.reply()
    case.asked.pause(False, jobs, other, NOW + 1.0)
    assert case.withdrawn == 1
    assert case.suspended[-1] == frozenset()
    assert {one.event and one.event.at for one in case.durable()} == {NOW + 1.0}
    assert other.told == [None]


def test_claims_of_what_was_left_are_let_go_of_once() -> None:
    case = Case()
    reply, other = case.reply(), case.reply()
    case.asked.let_go_of_left("left", reply, NOW)
    assert reply.told == []
    [change] = case.durable()
    assert change.event is not None
    assert (change.event.kind, change.event.at) == ("job_quarantine_ended", NOW)
    assert (change.event.repo, change.event.job) == ("repo", "left")
    assert reply.told == [True]
    case.asked.let_go_of_left("left", other, NOW)
    assert other.told == [False]
