"""What the ledger makes of one attempt after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from forge_actors.domain.changes import JobEnded
from forge_actors.domain.job_queue import RIVALS
from forge_actors.domain.ledger import Ledger
from tests.domain.making import (
    AT_ONCE,
    IDENTITY,
    INTERRUPTED,
    SUCCESS,
    dispatch_any,
    end_attempt,
    make_job,
    make_receipt,
)

if TYPE_CHECKING:
    from forge_actors.domain.launch import Receipt

PLAIN = ("workers",)


@pytest.mark.parametrize("told", [False, True])
def test_what_ran_has_one_event_of_it(told: bool) -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a"), (), 0.0)
    dispatch_any(ledger, 0.0)
    starts = ledger.started("a", 1, IDENTITY, 1.0) if told else []
    events = [change.event.kind for change in starts]
    changes, _ = end_attempt(
        ledger, "a", 1, replace(SUCCESS, identity=IDENTITY), None, 2.0
    )
    events += [change.event.kind for change in changes]
    assert events == ["job_running", "job_succeeded"]


@pytest.mark.parametrize("told", [False, True])
def test_what_was_ahead_takes_its_tokens_just_before_it_is_told_to_run(
    told: bool,
) -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a"), (), 0.0)
    [readied], _ = ledger.dispatch(PLAIN, 0.0, ahead=True)
    changes = ledger.started("a", 1, IDENTITY, 1.0) if told else []
    ended = end_attempt(ledger, "a", 1, replace(SUCCESS, identity=IDENTITY), None, 2.0)
    events = [change.event for change in (readied, *changes, *ended[0])]
    kinds = ["job_readied", "job_dispatched", "job_running", "job_succeeded"]
    assert [event.kind for event in events] == kinds
    assert events[0].data == events[1].data


def test_what_was_ahead_and_never_began_is_dispatched_as_any_other_then() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a", max_attempts=1), (), 0.0)
    ledger.dispatch(PLAIN, 0.0, ahead=True)
    withdrawn = replace(make_receipt("withdrawn", began=False), fence=1)
    _, outcome = end_attempt(ledger, "a", 1, withdrawn, None, 1.0)
    assert (outcome.state, outcome.uncounted) == ("queued", True)
    [change], job = ledger.dispatch(PLAIN, 2.0)
    assert (change.event.kind, job.counted) == ("job_dispatched", 1)
    assert job.queued_at == 0.0  # its place in line is the old one
    ran = ledger.started("a", 2, IDENTITY, 3.0)
    assert [each.event.kind for each in ran] == ["job_running"]


def test_a_job_that_waits_again_waits_from_its_new_place() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a", "write:path:a", replay="safe"), (), 0.0)
    ledger.add(make_job("like-a", "write:path:a", priority=3), (), 0.0)
    dispatch_any(ledger, 0.0)
    ledger.add(make_job("b", "write:path:b", queued_at=50.0), (), 50.0)
    end_attempt(ledger, "a", 1, INTERRUPTED, None, 100.0)
    assert [offer.job for offer in ledger.offers(100.0)] == ["b"]
    _, first = ledger.dispatch(PLAIN, 100.0)
    assert first is not None
    assert first.id == "b"


def refused(ledger: Ledger, job: str, attempt: int, receipt: Receipt) -> bool:
    """Whether a receipt changed nothing but the diagnostics."""
    [change], outcome = ledger.finish(job, attempt, receipt, None, 2.0)
    return (change.event.kind, outcome) == ("receipt_refused", None)


def test_news_of_an_older_attempt_changes_nothing() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    job = make_job("a", replay="safe")
    ledger.add(job, (), 0.0)
    dispatch_any(ledger, 0.0)
    end_attempt(ledger, "a", 1, INTERRUPTED, None, 1.0)
    assert refused(ledger, "a", 1, SUCCESS), "it waits"
    dispatch_any(ledger, 2.0)
    assert ledger.started("a", 1, IDENTITY, 3.0) == []
    assert refused(ledger, "a", 1, SUCCESS)
    assert (job.state, job.attempt) == ("dispatched", 2)
    assert refused(ledger, "unknown", 1, SUCCESS)


def test_a_receipt_of_another_dispatch_changes_nothing_and_is_told() -> None:
    ledger = Ledger("repo", fence=6)
    job = make_job("a", "write:path:a")
    ledger.add(job, (), 0.0)
    dispatch_any(ledger, 0.0)
    late = replace(SUCCESS, fence=6)
    [change], outcome = ledger.finish("a", 1, late, None, 1.0)
    assert outcome is None
    assert change.event.kind == "receipt_refused"
    assert change.event.data == {
        "attempt": 1,
        "fence": 6,
        "current": {"attempt": 1, "fence": 7},
    }
    assert (job.state, job.fence) == ("dispatched", 7)
    assert "a" in ledger.leases
    # That it was lost may be said by who never knew its fence.
    lost = make_receipt("lost")
    assert ledger.finish("a", 1, lost, None, 2.0)[1] is not None


@pytest.mark.parametrize(
    ("told", "finished"),
    [(60.0, 60.0), (20.0, 50.0), (900.0, 500.0)],
    ids=["it says", "not before its start", "not later than now"],
)
def test_a_job_has_ended_when_its_receipt_says_not_when_that_was_heard(
    told: float, finished: float
) -> None:
    ledger = Ledger("repo")
    ledger.add(make_job("a"), (), 0.0)
    dispatch_any(ledger, 0.0)
    ledger.started("a", 1, IDENTITY, 50.0)
    receipt = replace(SUCCESS, fence=1, identity=IDENTITY, ended_at=told)
    [ended], _ = ledger.finish("a", 1, receipt, None, 500.0)
    assert isinstance(ended, JobEnded)
    assert (ended.at, ended.event.at) == (finished, 500.0)


def test_the_best_of_those_that_an_end_may_let_start_is_known() -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    assert ledger.rival() is None
    ledger.add(make_job("a", "write:path:a", priority=4), (), 0.0)
    dispatch_any(ledger, 0.0)
    ledger.add(make_job("b", "write:path:a", priority=3), (), 0.0)
    assert ledger.offers(0.0) == ()
    assert ledger.rival() == 3
    ledger.add(make_job("c", priority=1), ("a",), 0.0)
    ledger.add(make_job("d", priority=0), ("b",), 0.0)
    assert ledger.rival() == 1  # `b` waits itself
    end_attempt(ledger, "a", 1, SUCCESS, None, 1.0)
    assert ledger.rival() == 1  # `c` has not been told yet
    ledger.dependency_ended("a", "succeeded", 1.0)
    assert ledger.rival() is None


@pytest.mark.parametrize("how", ["after", "claims"])
def test_too_many_to_look_at_count_as_the_best_there_may_be(how: str) -> None:
    ledger = Ledger("repo", backoff=AT_ONCE)
    ledger.add(make_job("a", "write:path:a", priority=4), (), 0.0)
    dispatch_any(ledger, 0.0)
    for number in range(RIVALS):
        job = make_job(f"j{number}", f"write:path:a/{number}", priority=3)
        ledger.add(job, ("a",) if how == "after" else (), 0.0)
    assert ledger.offers(0.0) == ()
    assert ledger.rival() == 3
    ledger.add(make_job("b", "write:path:a/b", priority=3), ("a",), 0.0)
    assert ledger.rival() == 0
