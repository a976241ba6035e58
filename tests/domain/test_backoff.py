"""Backoff: how long a job waits for its next attempt, and when it is due."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.backoff import JITTER, Backoff, Retries
from forge_actors.domain.capacity import RepositoryLimits
from forge_actors.domain.changes import JobEnded, JobRequeued, JobWaits
from forge_actors.domain.edits import Edit
from forge_actors.domain.ledger import Ledger
from tests.domain.making import (
    FAILURE,
    INTERRUPTED,
    dispatch_any,
    end_attempt,
    make_job,
)

BACKOFF = Backoff(first=10.0, longest=100.0)


def interrupted(now: float = 50.0, **fields: object) -> Ledger:
    """A ledger whose only job was interrupted in its first attempt."""
    ledger = Ledger("repo", backoff=BACKOFF)
    ledger.add(make_job("a", replay="safe", **fields), (), 0.0)  # type: ignore[arg-type]
    dispatch_any(ledger, 0.0)
    end_attempt(ledger, "a", 1, INTERRUPTED, None, now)
    return ledger


def due(ledger: Ledger) -> float:
    moment = ledger.next_deadline()
    assert moment is not None
    return moment


@given(st.integers(1, 10_000), st.text(max_size=20))
def test_delays_double_up_to_the_longest_with_jitter(attempt: int, job: str) -> None:
    delay = BACKOFF.delay(job, attempt)
    whole = min(100.0, 10.0 * 2.0 ** min(attempt - 1, 50))
    assert whole * (1 - JITTER) <= delay <= whole
    assert delay == BACKOFF.delay(job, attempt)


def test_jobs_that_failed_together_do_not_come_back_together() -> None:
    delays = {BACKOFF.delay(f"job{number}", 1) for number in range(100)}
    assert len(delays) == 100
    assert max(delays) - min(delays) > 10.0 * JITTER / 2


def test_without_a_delay_a_job_is_queued_at_once() -> None:
    assert Backoff(0.0, 0.0).delay("a", 1) == 0.0


def test_an_interrupted_job_is_offered_when_its_delay_is_over() -> None:
    ledger = interrupted()
    job = ledger.jobs["a"]
    assert job.state == "waiting_for_retry"
    moment = due(ledger)
    assert moment == job.retry_at == 50.0 + BACKOFF.delay("a", 1)
    assert ledger.expire(moment - 0.001) == []
    assert ledger.offers(moment - 0.001) == ()
    [change] = ledger.expire(moment)
    assert isinstance(change, JobWaits)
    assert (change.state, change.event.kind) == ("queued", "job_queued")
    assert dispatch_any(ledger, moment) == "a"


def test_the_move_says_when_and_why() -> None:
    ledger = Ledger("repo", backoff=BACKOFF)
    ledger.add(make_job("a", replay="always", exit_attempts=3), (), 0.0)
    dispatch_any(ledger, 0.0)
    [change], _ = end_attempt(ledger, "a", 1, FAILURE, None, 5.0)
    assert isinstance(change, JobRequeued)
    assert change.state == "waiting_for_retry"
    assert change.retry_at == due(ledger)
    assert change.event.kind == "job_waiting_for_retry"
    assert change.event.data["delay"] == pytest.approx(due(ledger) - 5.0, abs=0.001)
    waiting = ledger.waiting("a", 6.0)
    assert (waiting.kind, waiting.until) == ("retry", change.retry_at)
    assert waiting.detail == "attempt 2"
    assert ledger.state_of("a", waiting) == "waiting_for_retry"


def test_a_job_that_waits_for_its_next_attempt_can_be_cancelled() -> None:
    ledger = interrupted()
    [change], runs = ledger.cancel("a", 51.0)
    assert isinstance(change, JobEnded)
    assert (change.state, runs) == ("cancelled", False)
    assert ledger.next_deadline() is None
    assert ledger.idle


def test_its_hold_outlasts_the_delay() -> None:
    ledger = interrupted()
    moment = due(ledger)
    ledger.steer("a", "hold", 51.0)
    assert ledger.waiting("a", 52.0).kind == "pause"
    ledger.expire(moment)
    assert ledger.offers(moment) == ()
    ledger.steer("a", "unhold", moment + 5)
    assert dispatch_any(ledger, moment + 5) == "a"


def test_a_hold_that_ends_before_leaves_the_delay_as_it_was() -> None:
    ledger = interrupted()
    moment = due(ledger)
    ledger.steer("a", "hold", 51.0)
    ledger.steer("a", "unhold", 52.0)
    assert ledger.offers(52.0) == ()
    assert due(ledger) == moment
    ledger.expire(moment)
    assert dispatch_any(ledger, moment) == "a"


def test_an_edit_changes_it_and_not_its_moment() -> None:
    ledger = interrupted()
    moment = due(ledger)
    assert ledger.edit("a", Edit(priority=0, queue_timeout=30.0), 51.0)[1] is None
    assert due(ledger) == moment
    ledger.expire(moment)
    assert ledger.jobs["a"].priority == 0
    # Its queue budget begins when nothing but room is lacking.
    assert due(ledger) == moment + 30.0


def test_a_repository_that_is_gone_ends_it() -> None:
    [change] = interrupted().fail_waiting("REPOSITORY_GONE", "gone", 51.0)
    assert isinstance(change, JobEnded)


def test_a_restart_keeps_its_moment() -> None:
    before = interrupted().jobs["a"]
    ledger = Ledger("repo", backoff=BACKOFF)
    assert ledger.add(before, (), 51.0) == []
    assert due(ledger) == before.retry_at
    assert ledger.offers(51.0) == ()
    late = Ledger("repo", backoff=BACKOFF)
    [change] = late.add(interrupted().jobs["a"], (), 1000.0)
    assert isinstance(change, JobWaits)
    assert dispatch_any(late, 1000.0) == "a"


def test_one_that_runs_after_others_waits_for_its_moment_after_a_restart_too() -> None:
    job = interrupted(after=("first",)).jobs["a"]
    ledger = Ledger("repo", backoff=BACKOFF)
    ledger.add(job, ("first",), 51.0)
    assert ledger.dependency_ended("first", "succeeded", 52.0) == []
    assert ledger.offers(52.0) == ()
    assert due(ledger) == job.retry_at


def test_the_policy_of_a_reload_holds_from_the_next_delay_on() -> None:
    ledger = interrupted()
    moment = due(ledger)
    ledger.set_limits(RepositoryLimits(4, 1800.0, None, Backoff(40.0, 500.0)))
    assert due(ledger) == moment
    ledger.expire(moment)
    dispatch_any(ledger, moment)
    end_attempt(ledger, "a", 2, INTERRUPTED, None, 100.0)
    assert 100.0 + 64.0 <= due(ledger) <= 100.0 + 80.0


def test_a_clock_that_was_set_back_delays_nothing_for_longer_than_the_longest() -> None:
    ledger = interrupted(now=1_000_000.0)
    assert ledger.expire(500.0) == []
    assert due(ledger) == 600.0


def test_moments_come_in_their_order() -> None:
    retries = Retries()
    for job, moment in (("c", 30.0), ("a", 10.0), ("b", 20.0), ("d", 40.0)):
        retries.add(job, moment)
    retries.forget("b")
    assert retries.first() == 10.0
    assert retries.take_due(35.0, 100.0) == ["a", "c"]
    assert retries.due("d") == retries.first() == 40.0
