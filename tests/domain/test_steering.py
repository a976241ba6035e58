"""Holding, pausing, resuming and editing, one story at a time."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from forge_actors.domain.changes import (
    JobEdited,
    JobEnded,
    JobHeld,
    JobWaits,
    Noted,
    PauseBegan,
    PauseEnded,
)
from forge_actors.domain.edits import Edit
from forge_actors.domain.jobs import Budgets
from forge_actors.domain.ledger import Ledger
from forge_actors.domain.pauses import Pauses
from forge_actors.domain.scopes import Pause, describe
from tests.domain.making import (
    AT_ONCE,
    INTERRUPTED,
    SUCCESS,
    dispatch_any,
    end_attempt,
    make_job,
)

OVERTAKE = 100.0
EVERYTHING = Pause("all", 5.0)
LOCAL = Pause("provider:local", 5.0)


def offered(ledger: Ledger, now: float) -> set[str]:
    return {offer.job for offer in ledger.offers(now)}


def starving() -> Ledger:
    """`first` runs, `both` has waited so long that `later` must wait for it."""
    ledger = Ledger("repo", overtake_after=OVERTAKE)
    ledger.add(make_job("first", "write:path:a"), (), 0.0)
    assert dispatch_any(ledger, 0.0) == "first"
    claims = ("write:path:a", "write:path:b")
    ledger.add(make_job("both", *claims, provider="local"), (), 0.0)
    assert offered(ledger, 1.0) == set()
    ledger.add(make_job("later", "write:path:b", queued_at=OVERTAKE), (), OVERTAKE)
    assert offered(ledger, OVERTAKE + 1) == set()
    assert ledger.waiting("later", OVERTAKE + 1).kind == "reservation"
    return ledger


def test_a_held_job_is_not_offered_until_it_is_let_go() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a"), (), 0.0)
    [held], refusal = ledger.steer("a", "hold", 1.0)
    assert refusal is None
    assert isinstance(held, JobHeld)
    assert (held.since, held.event.kind) == (1.0, "job_held")
    assert offered(ledger, 2.0) == set()
    waiting = ledger.waiting("a", 2.0)
    assert (waiting.kind, waiting.since) == ("pause", 1.0)
    assert waiting.detail == "it is held; forge-actors unhold a lets it go on"
    assert ledger.state_of("a", waiting) == "queued"
    assert ledger.steer("a", "hold", 3.0) == ([], None)
    [let_go], _ = ledger.steer("a", "unhold", 4.0)
    assert isinstance(let_go, JobHeld)
    assert (let_go.since, let_go.event.kind) == (None, "job_unheld")
    assert ledger.steer("a", "unhold", 5.0) == ([], None)
    assert offered(ledger, 5.0) == {"a"}


def test_a_held_job_stays_held_when_what_it_runs_after_has_succeeded() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a", state="waiting_for_dependency"), ("other",), 0.0)
    ledger.steer("a", "hold", 1.0)
    waiting = ledger.waiting("a", 1.0)
    assert waiting.kind == "pause"
    assert ledger.state_of("a", waiting) == "waiting_for_dependency"
    ledger.dependency_ended("other", "succeeded", 2.0)
    assert offered(ledger, 2.0) == set()
    ledger.steer("a", "unhold", 3.0)
    assert offered(ledger, 3.0) == {"a"}


def test_a_job_that_was_saved_as_held_comes_back_so() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    job = make_job("a")
    job.held_at = 1.0
    ledger.add(job, (), 2.0)
    assert offered(ledger, 2.0) == set()
    assert ledger.waiting("a", 2.0).kind == "pause"


def test_a_job_that_was_saved_as_paused_stands_still_until_it_is_resumed() -> None:
    ledger = Ledger("repo", pause=Pause("repo:repo", 1.0, jobs=True))
    for name in ("by itself", "by the pause"):
        job = make_job(name, state="running", attempt=1)
        job.held_at = 1.0 if name == "by itself" else None
        ledger.adopt(job)
    assert ledger.suspended == {"by itself", "by the pause"}
    ledger.resume(2.0, jobs=False)
    assert ledger.suspended == {"by itself"}
    ledger.steer("by itself", "resume", 3.0)
    assert ledger.suspended == set()


def test_what_a_held_job_was_blocked_by_is_not_what_it_waits_for() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a", "write:path:x"), (), 0.0)
    ledger.add(make_job("b", "write:path:x"), (), 0.0)
    dispatch_any(ledger, 0.0)
    ledger.offers(0.0)
    assert [type(c) for c in ledger.announce(1.0)] == [JobWaits]
    changes, _ = ledger.steer("b", "hold", 2.0)
    assert [type(change) for change in changes] == [JobHeld, JobWaits]
    assert ledger.jobs["b"].state == "queued"


@pytest.mark.parametrize("how", ["hold", "unhold"])
def test_a_job_that_runs_is_not_held_but_paused(how: str) -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a"), (), 0.0)
    dispatch_any(ledger, 0.0)
    changes, refusal = ledger.steer("a", how, 1.0)  # type: ignore[arg-type]
    assert changes == []
    assert refusal is not None
    assert f"job a runs: {how} is for jobs that wait; use " in refusal


def test_a_paused_job_keeps_its_leases_and_is_held_if_it_must_run_again() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a", "write:path:x", replay="safe"), (), 0.0)
    dispatch_any(ledger, 0.0)
    [paused], _ = ledger.steer("a", "pause", 1.0)
    assert (paused.event.kind, paused.event.data) == ("job_paused", {"reason": "asked"})
    assert ledger.suspended == {"a"}
    assert ledger.leases.keys() == {"a"}
    assert ledger.steer("a", "pause", 2.0) == ([], None)
    end_attempt(ledger, "a", 1, INTERRUPTED, "shutdown", 3.0)
    assert ledger.suspended == set()
    assert offered(ledger, 3.0) == set()
    assert ledger.waiting("a", 3.0).kind == "pause"
    ledger.steer("a", "resume", 4.0)
    assert offered(ledger, 4.0) == {"a"}


@pytest.mark.parametrize("end", ["hold", "edit", "pause"])
def test_a_job_that_cannot_start_any_more_reserves_nothing(end: str) -> None:
    ledger = starving()
    now = OVERTAKE + 2
    if end == "hold":
        ledger.steer("both", "hold", now)
    elif end == "pause":
        ledger.told_of([LOCAL], now)
    else:
        ledger.edit("both", Edit(claims=make_job("x", "write:path:a").claims), now)
    assert offered(ledger, now) == {"later"}
    if end == "pause":
        ledger.told_of([], now)
        ledger.announce(now)
        assert offered(ledger, now) == set(), "it waited all the time"


def test_a_paused_repository_offers_nothing_and_its_jobs_say_so() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a"), (), 0.0)
    [began] = ledger.pause(1.0, jobs=False)
    assert isinstance(began, PauseBegan)
    assert began.pause == Pause("repo:repo", 1.0)
    assert began.event.kind == "paused"
    assert offered(ledger, 2.0) == set()
    assert ledger.dispatch(("workers",), 2.0) == ([], None)
    waiting = ledger.waiting("a", 2.0)
    assert (waiting.kind, waiting.since) == ("pause", 1.0)
    assert ledger.pause(3.0, jobs=False) == []
    [ended] = ledger.resume(4.0, jobs=False)
    assert isinstance(ended, PauseEnded)
    assert ended.event.kind == "resumed"
    assert ledger.resume(5.0, jobs=False) == []
    assert offered(ledger, 5.0) == {"a"}


def test_a_paused_provider_holds_back_only_its_own_jobs() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("with", provider="local"), (), 0.0)
    ledger.add(make_job("without"), (), 0.0)
    ledger.told_of([LOCAL], 6.0)
    assert offered(ledger, 6.0) == {"without"}
    waiting = ledger.waiting("with", 6.0)
    assert (waiting.kind, waiting.since) == ("pause", 5.0)
    assert waiting.detail == describe("provider:local")
    ledger.told_of([], 7.0)
    assert offered(ledger, 7.0) == {"with", "without"}


def test_a_pause_with_jobs_suspends_them_and_its_end_continues_them() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    for name in ("a", "b"):
        ledger.add(make_job(name), (), 0.0)
        dispatch_any(ledger, 0.0)
    ledger.steer("b", "pause", 1.0)
    assert ledger.told_of([EVERYTHING], 6.0) == []
    assert ledger.suspended == {"b"}
    [paused] = ledger.told_of([Pause("all", 5.0, jobs=True)], 7.0)
    assert isinstance(paused, Noted)
    assert (paused.event.job, paused.event.data) == ("a", {"reason": "all"})
    assert ledger.suspended == {"a", "b"}
    [resumed] = ledger.told_of([], 8.0)
    assert (resumed.event.job, resumed.event.kind) == ("a", "job_resumed")
    assert ledger.suspended == {"b"}, "it was paused by itself"
    [let_go] = ledger.told_of([], 9.0, let_go="all")
    assert isinstance(let_go, JobHeld)
    assert ledger.suspended == set()


def test_a_resumed_job_waits_for_the_pause_that_covers_it_too() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a"), (), 0.0)
    dispatch_any(ledger, 0.0)
    ledger.steer("a", "pause", 1.0)
    assert len(ledger.pause(2.0, jobs=True)) == 1
    [resumed], _ = ledger.steer("a", "resume", 3.0)
    assert resumed.event.data == {"reason": "asked", "also": "repo:repo"}
    assert ledger.suspended == {"a"}
    ledger.resume(4.0, jobs=False)
    assert ledger.suspended == set()


@pytest.mark.parametrize("by", ["hold", "all", "repo", "provider"])
def test_a_queue_budget_stands_still_while_a_pause_holds_the_job(by: str) -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a", provider="local", queue_budget=50.0), (), 0.0)
    if by == "hold":
        ledger.steer("a", "hold", 30.0)
    elif by == "repo":
        ledger.pause(30.0, jobs=False)
    else:
        ledger.told_of([EVERYTHING if by == "all" else LOCAL], 30.0)
    assert ledger.next_deadline() is None
    assert ledger.expire(1000.0) == []
    if by == "hold":
        ledger.steer("a", "unhold", 1000.0)
    elif by == "repo":
        ledger.resume(1000.0, jobs=False)
    else:
        ledger.told_of([], 1000.0)
    assert ledger.next_deadline() == 1020.0
    assert ledger.expire(1019.0) == []
    [ended] = ledger.expire(1020.0)
    assert isinstance(ended, JobEnded)
    assert ended.error is not None
    assert ended.error.code == "QUEUE_TIMEOUT"


def test_an_edited_job_takes_its_new_place_at_once() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    for name in ("a", "b"):
        ledger.add(make_job(name), (), 0.0)
    [edited], refusal = ledger.edit("b", Edit(priority=0), 1.0)
    assert refusal is None
    assert isinstance(edited, JobEdited)
    assert (edited.event.kind, edited.event.data) == (
        "job_edited",
        {"changed": {"priority": "P0"}},
    )
    assert dispatch_any(ledger, 1.0) == "b"
    assert dispatch_any(ledger, 1.0) == "a"


def test_a_job_behind_one_that_was_edited_is_not_lost() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a"), (), 0.0)
    ledger.edit("a", Edit(priority=0), 1.0)
    ledger.add(make_job("b", queued_at=2.0), (), 2.0)
    assert dispatch_any(ledger, 2.0) == "a"
    assert dispatch_any(ledger, 2.0) == "b"


def test_only_a_job_that_waits_can_be_edited() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a"), (), 0.0)
    dispatch_any(ledger, 0.0)
    changes, refusal = ledger.edit("a", Edit(priority=0), 1.0)
    assert (changes, refusal) == (
        [],
        "job a runs: only a job that waits can be edited",
    )
    assert ledger.jobs["a"].priority == 2
    end_attempt(ledger, "a", 1, SUCCESS, None, 2.0)


def test_an_edit_begins_a_queue_budget_or_takes_it_away() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a", queue_budget=50.0), (), 0.0)
    ledger.edit("a", Edit(queue_timeout=100.0), 40.0)
    assert ledger.next_deadline() == 140.0
    ledger.edit("a", Edit(priority=1), 60.0)
    assert ledger.next_deadline() == 140.0
    ledger.edit("a", Edit(queue_timeout=None), 70.0)
    assert ledger.next_deadline() is None


def test_an_edit_tells_of_what_was_given_and_keeps_the_rest() -> None:
    edit = Edit(labels=("x",), timeout=None, idle_timeout=5.0)
    assert edit.shown() == {"labels": ("x",), "timeout": None, "idle_timeout": 5.0}
    old = Budgets(admission=1.0, queue=2.0, execution=3.0)
    assert edit.budgets(old) == Budgets(admission=1.0, queue=2.0, idle=5.0)
    assert (edit.priority, edit.claims) == (UNSET, UNSET)


def test_a_pause_that_suspends_more_than_before_is_the_same_pause() -> None:
    pauses = Pauses()
    assert len(pauses.begin("all", 1.0, jobs=False)) == 1
    [again] = pauses.begin("all", 2.0, jobs=True)
    assert isinstance(again, PauseBegan)
    assert again.pause == Pause("all", 1.0, jobs=True)
    assert pauses.begin("all", 3.0, jobs=False) == []
    assert pauses.suspending(()) == again.pause


def test_what_is_told_of_a_move_names_the_repository() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a"), (), 0.0)
    [held], _ = ledger.steer("a", "hold", 1.0)
    [released], _ = ledger.steer("a", "release", 2.0)
    [began] = ledger.pause(3.0, jobs=False)
    for change in (held, released, began):
        assert change.event.repo == "repo"
