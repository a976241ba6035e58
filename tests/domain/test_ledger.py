"""The ledger's moves and questions, one story at a time."""

from __future__ import annotations

import pytest
from msgspec import structs

from forge_actors.domain.changes import (
    JobDispatched,
    JobEnded,
    JobRan,
    JobRequeued,
    JobWaits,
)
from forge_actors.domain.jobs import WAITING, State
from forge_actors.domain.ledger import ANNOUNCED_AT_ONCE, LOOKED_AT_ONCE, Ledger
from tests.domain.making import (
    AT_ONCE,
    FAILURE,
    IDENTITY,
    INTERRUPTED,
    SUCCESS,
    dispatch_any,
    end_attempt,
    make_job,
    make_receipt,
)

PLAIN = ("workers",)


def test_a_new_ledger_is_idle_and_offers_nothing() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    assert ledger.idle
    assert ledger.offers(0.0) == ()
    assert ledger.dispatch(PLAIN, 0.0) == ([], None)


def test_a_job_goes_through_dispatched_and_running_to_its_end() -> None:
    ledger = Ledger("repo", fence=41)
    ledger.add(make_job("a", "write:path:src"), (), 0.0)
    [dispatched], job = ledger.dispatch(PLAIN, 1.0)
    assert isinstance(dispatched, JobDispatched)
    assert job is not None
    assert (job.state, job.attempt, job.fence) == ("dispatched", 1, 42)
    assert dispatched.event.data["claims"] == job.claims
    [ran] = ledger.started("a", 1, IDENTITY, 2.0)
    assert isinstance(ran, JobRan)
    assert (job.state, job.started_at) == ("running", 2.0)
    [ended], outcome = end_attempt(ledger, "a", 1, SUCCESS, None, 3.0)
    assert isinstance(ended, JobEnded)
    assert outcome is not None
    assert (ended.state, ended.error) == ("succeeded", None)
    assert ended.receipt == structs.replace(SUCCESS, fence=42)
    assert ledger.idle
    assert not ledger.leases


def test_a_job_that_starts_twice_runs_once() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a"), (), 0.0)
    dispatch_any(ledger, 0.0)
    assert ledger.started("a", 1, IDENTITY, 1.0)
    assert ledger.started("a", 1, IDENTITY, 2.0) == []


def test_the_best_job_is_dispatched_whatever_came_first() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("late", priority=2, queued_at=5.0), (), 10.0)
    ledger.add(make_job("b", priority=2, queued_at=1.0), (), 10.0)
    ledger.add(make_job("a", priority=2, queued_at=1.0), (), 10.0)
    ledger.add(make_job("urgent", priority=0, queued_at=9.0), (), 10.0)
    order = [dispatch_any(ledger, 10.0) for _ in range(4)]
    assert order == ["urgent", "a", "b", "late"]


def test_a_repository_runs_no_more_jobs_than_its_workers() -> None:
    ledger = Ledger("repo", workers=2)
    for name in "abc":
        ledger.add(make_job(name), (), 0.0)
    assert [dispatch_any(ledger, 0.0) for _ in range(3)] == ["a", "b", None]
    waiting = ledger.waiting("c", 0.0)
    assert (waiting.kind, waiting.used, waiting.limit) == ("token", 2, 2)
    assert set(waiting.holders) == {"a", "b"}


def test_a_disabled_repository_starts_nothing_and_says_so() -> None:
    ledger = Ledger("repo", enabled=False)
    ledger.add(make_job("a"), (), 0.0)
    assert dispatch_any(ledger, 0.0) is None
    assert ledger.dispatch(PLAIN, 0.0) == ([], None)
    assert ledger.waiting("a", 0.0).kind == "disabled"
    ledger.enabled = True
    assert dispatch_any(ledger, 0.0) == "a"


def test_a_blocked_job_is_passed_over_and_wakes_when_the_holder_ends() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("holder", "write:path:a"), (), 0.0)
    assert dispatch_any(ledger, 0.0) == "holder"
    ledger.add(make_job("blocked", "write:path:a", priority=0, queued_at=1.0), (), 1.0)
    ledger.add(make_job("free", "write:path:b", queued_at=2.0), (), 2.0)
    assert dispatch_any(ledger, 3.0) == "free"
    waiting = ledger.waiting("blocked", 4.0)
    assert (waiting.kind, waiting.holders) == ("claim", ("holder",))
    assert ledger.state_of("blocked", waiting) == "waiting_for_workspace"
    assert dispatch_any(ledger, 4.0) is None
    end_attempt(ledger, "holder", 1, FAILURE, None, 5.0)
    assert dispatch_any(ledger, 5.0) == "blocked"


def test_a_lane_of_many_priorities_wakes_as_a_whole() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("holder", "write:path:a", priority=0), (), 0.0)
    assert dispatch_any(ledger, 0.0) == "holder"
    for level in (4, 2, 3):
        name = f"p{level}"
        ledger.add(make_job(name, "write:path:a", priority=level), (), 0.0)
    assert dispatch_any(ledger, 0.0) is None
    order = []
    running = "holder"
    while not ledger.idle:
        end_attempt(ledger, running, 1, SUCCESS, None, 1.0)
        running = dispatch_any(ledger, 1.0) or ""
        order.append(running)
    assert order == ["p2", "p3", "p4", ""]


def test_a_job_queued_again_at_the_same_instant_is_still_one_job() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    for attempt in (1, 2, 3):
        if attempt == 1:
            ledger.add(make_job("a", replay="safe"), (), 0.0)
        assert dispatch_any(ledger, 0.0) == "a"
        end_attempt(ledger, "a", attempt, INTERRUPTED, None, 0.0)
    assert ledger.idle


# -- dependencies ----------------------------------------------------------------------


def test_a_job_starts_when_all_it_runs_after_has_succeeded() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    job = make_job("c", state="waiting_for_dependency", after=("a", "b"))
    ledger.add(job, ("a", "b"), 0.0)
    assert dispatch_any(ledger, 0.0) is None
    waiting = ledger.waiting("c", 0.0)
    assert (waiting.kind, waiting.holders) == ("dependency", ("a", "b"))
    assert ledger.state_of("c", waiting) == "waiting_for_dependency"
    assert ledger.dependency_ended("a", "succeeded", 1.0) == []
    assert ledger.unmet("c") == {"b"}
    [change] = ledger.dependency_ended("b", "succeeded", 2.0)
    assert isinstance(change, JobWaits)
    assert change.state == job.state == "queued"
    assert dispatch_any(ledger, 2.0) == "c"


@pytest.mark.parametrize("state", ["failed", "cancelled", "timed_out", "stale"])
def test_a_job_after_one_that_did_not_succeed_asks_for_attention(state: State) -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("b", state="waiting_for_dependency"), ("a",), 0.0)
    [change] = ledger.dependency_ended("a", state, 1.0)
    assert isinstance(change, JobEnded)
    assert change.state == "human_attention_required"
    assert change.error is not None
    assert change.error.code == "DEPENDENCY_BLOCKED"
    assert state in change.error.message
    assert ledger.idle


def test_news_of_a_dependency_nobody_waits_for_changes_nothing() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("b", state="waiting_for_dependency"), ("a", "x"), 0.0)
    ledger.cancel("b", 0.0)
    assert ledger.dependency_ended("a", "failed", 1.0) == []
    assert ledger.dependency_ended("x", "succeeded", 1.0) == []
    assert ledger.dependency_ended("never heard of", "succeeded", 1.0) == []


# -- time budgets ----------------------------------------------------------------------


def test_a_job_that_could_not_start_in_time_ends_timed_out() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a", queue_budget=60.0), (), 10.0)
    assert ledger.next_deadline() == 70.0
    assert ledger.expire(69.0) == []
    [change] = ledger.expire(70.0)
    assert isinstance(change, JobEnded)
    assert change.state == "timed_out"
    assert change.error is not None
    assert change.error.code == "QUEUE_TIMEOUT"
    assert ledger.next_deadline() is None


def test_the_queue_budget_stands_still_while_a_dependency_holds_the_job() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    job = make_job("b", queue_budget=60.0, state="waiting_for_dependency")
    ledger.add(job, ("a",), 0.0)
    assert ledger.next_deadline() is None
    assert ledger.expire(1000.0) == []
    ledger.dependency_ended("a", "succeeded", 1000.0)
    assert ledger.next_deadline() == 1060.0


def test_a_job_that_runs_has_no_queue_deadline() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a", queue_budget=60.0), (), 0.0)
    dispatch_any(ledger, 1.0)
    assert ledger.next_deadline() is None
    assert ledger.expire(1000.0) == []


def test_a_job_queued_again_has_a_whole_new_queue_budget() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("first", "write:path:b", queue_budget=55.0), (), 0.0)
    ledger.add(make_job("again", replay="safe", queue_budget=60.0, priority=0), (), 0.0)
    assert dispatch_any(ledger, 0.0) == "again"
    end_attempt(ledger, "again", 1, INTERRUPTED, None, 50.0)
    [ended] = ledger.expire(70.0)
    assert isinstance(ended, JobEnded)
    assert ended.job == "first"
    assert ledger.next_deadline() == 110.0


def test_a_job_nobody_looked_at_in_time_ends_when_it_is_seen() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    [change] = ledger.add(make_job("a", admission_budget=5.0), (), 6.0)
    assert isinstance(change, JobEnded)
    assert change.error is not None
    assert (change.state, change.error.code) == ("timed_out", "ADMISSION_TIMEOUT")
    assert ledger.add(make_job("b", admission_budget=5.0), (), 4.0) == []


def test_a_job_that_was_tried_before_was_seen_before() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    job = make_job("a", admission_budget=5.0, attempt=1)
    assert ledger.add(job, (), 1000.0) == []


# -- the end of an attempt -------------------------------------------------------------


def test_an_interrupted_job_that_is_safe_to_repeat_is_queued_again() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    job = make_job("a", "write:path:a", replay="safe")
    ledger.add(job, (), 0.0)
    dispatch_any(ledger, 0.0)
    ledger.started("a", 1, IDENTITY, 1.0)
    [change], _ = end_attempt(ledger, "a", 1, INTERRUPTED, None, 9.0)
    assert isinstance(change, JobRequeued)
    assert change.error is not None
    assert (job.state, job.fence, job.queued_at) == ("queued", None, 9.0)
    assert job.started_at is None
    assert not ledger.leases
    assert dispatch_any(ledger, 9.0) == "a"
    assert (job.attempt, job.fence) == (2, 2)


def test_what_was_saved_as_running_is_adopted_with_its_leases() -> None:
    ledger = Ledger("repo", fence=7)
    ledger.adopt(make_job("a", "write:path:a", state="running", attempt=1))
    ledger.add(make_job("b", "write:path:a"), (), 0.0)
    assert dispatch_any(ledger, 0.0) is None
    [change], _ = end_attempt(ledger, "a", 1, None, None, 1.0)
    assert isinstance(change, JobEnded)
    assert change.state == "human_attention_required"
    assert dispatch_any(ledger, 1.0) == "b"
    assert ledger.fence == 8


# -- cancelling ------------------------------------------------------------------------


@pytest.mark.parametrize("state", sorted(WAITING))
def test_a_job_is_cancelled_in_every_state_in_which_it_waits(state: State) -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    unmet = ("x",) if state == "waiting_for_dependency" else ()
    ledger.add(make_job("a", state=state), unmet, 0.0)
    [change], runs = ledger.cancel("a", 1.0)
    assert isinstance(change, JobEnded)
    assert change.error is not None
    assert (change.state, change.error.code) == ("cancelled", "CANCELLED")
    assert not runs
    assert ledger.idle


@pytest.mark.parametrize("began", [False, True])
def test_a_job_that_runs_is_cancelled_when_its_tree_is_gone(began: bool) -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a", replay="safe"), (), 0.0)
    dispatch_any(ledger, 0.0)
    if began:
        ledger.started("a", 1, IDENTITY, 1.0)
    assert ledger.cancel("a", 2.0) == ([], True)
    assert "a" in ledger.leases
    receipt = make_receipt("stop", signal="SIGTERM", began=began)
    [change], _ = end_attempt(ledger, "a", 1, receipt, "cancelled", 3.0)
    assert isinstance(change, JobEnded)
    assert change.state == "cancelled"
    assert ledger.idle


def test_when_the_folder_is_gone_waiting_jobs_fail_and_running_ones_go_on() -> None:
    ledger = Ledger("repo", workers=1)
    for name in "abc":
        ledger.add(make_job(name), ("x",) if name == "c" else (), 0.0)
    dispatch_any(ledger, 0.0)
    changes = ledger.fail_waiting("REPOSITORY_GONE", "its folder is gone", 1.0)
    assert [c.job for c in changes if isinstance(c, JobEnded)] == ["b", "c"]
    assert ledger.jobs.keys() == {"a"}


# -- telling what jobs wait for --------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "state"),
    [
        ("write:path:a", "waiting_for_workspace"),
        ("write:heavy-check:e2e", "waiting_for_heavy_check"),
        ("write:integration:main", "waiting_for_integration"),
        ("write:git-ref:main", "waiting_for_integration"),
        ("write:release:1", "waiting_for_release_barrier"),
        ("write:temp:x", "queued"),
    ],
)
def test_the_state_names_what_a_job_waits_for_and_returns_to_queued(
    claim: str, state: State
) -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a", claim), (), 0.0)
    dispatch_any(ledger, 0.0)
    job = make_job("b", claim)
    ledger.add(job, (), 0.0)
    changes = ledger.announce(1.0)
    assert [c.state for c in changes if isinstance(c, JobWaits)] == (
        [state] if state != "queued" else []
    )
    assert job.state == state
    assert ledger.announce(2.0) == [], "nothing has changed"
    end_attempt(ledger, "a", 1, SUCCESS, None, 3.0)
    ledger.announce(3.0)
    assert job.state == "queued"


def test_a_pass_saves_a_bounded_number_of_waiting_states() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a", "write:path:a"), (), 0.0)
    dispatch_any(ledger, 0.0)
    for number in range(LOOKED_AT_ONCE + 50):
        ledger.add(make_job(f"b{number:05}", "write:path:a"), (), 0.0)
    passes = 0
    while changes := ledger.announce(1.0):
        assert len(changes) <= ANNOUNCED_AT_ONCE
        passes += 1
    assert passes == LOOKED_AT_ONCE / ANNOUNCED_AT_ONCE


def test_the_place_of_a_job_counts_those_before_it_with_the_same_tokens() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a", priority=1), (), 0.0)
    ledger.add(make_job("b"), (), 0.0)
    ledger.add(make_job("check", kind="check", priority=0), (), 0.0)
    ledger.add(make_job("later"), ("x",), 0.0)
    assert [ledger.ahead_of(name, 0.0) for name in ("a", "b", "check")] == [0, 1, 0]
