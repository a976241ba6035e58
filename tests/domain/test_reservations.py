"""Starving jobs reserve what they claim; and no queue, however long, costs much."""

from __future__ import annotations

import pytest

from forge_actors.domain import lanes
from forge_actors.domain.claims import Claim, first_conflict
from forge_actors.domain.ledger import Ledger
from tests.domain.making import SUCCESS, dispatch_any, end_attempt, make_job

AFTER = 1800.0


def starving_ledger() -> Ledger:
    """`holder` holds a; `big`, which wants a and b, has waited too long for it."""
    ledger = Ledger("repo", overtake_after=AFTER)
    ledger.add(make_job("holder", "write:path:a"), (), 0.0)
    assert dispatch_any(ledger, 0.0) == "holder"
    ledger.add(make_job("big", "write:path:a", "write:path:b"), (), 0.0)
    assert dispatch_any(ledger, 0.0) is None
    return ledger


def test_until_it_starves_a_blocked_job_is_overtaken() -> None:
    ledger = starving_ledger()
    ledger.add(make_job("small", "write:path:b", queued_at=1700.0), (), 1700.0)
    assert dispatch_any(ledger, AFTER - 1) == "small"


def test_what_a_starving_job_claims_is_kept_free_for_it() -> None:
    ledger = starving_ledger()
    ledger.add(make_job("small", "write:path:b", queued_at=1801.0), (), 1801.0)
    ledger.add(make_job("other", "write:path:c", queued_at=1801.0), (), 1801.0)
    assert dispatch_any(ledger, 1801.0) == "other"
    assert dispatch_any(ledger, 1801.0) is None
    end_attempt(ledger, "holder", 1, SUCCESS, None, 1802.0)
    assert dispatch_any(ledger, 1802.0) == "big"
    assert dispatch_any(ledger, 1802.0) is None
    end_attempt(ledger, "big", 1, SUCCESS, None, 1803.0)
    assert dispatch_any(ledger, 1803.0) == "small"


def test_both_jobs_say_that_the_claim_is_reserved() -> None:
    ledger = starving_ledger()
    ledger.add(make_job("small", "write:path:b", queued_at=1801.0), (), 1801.0)
    assert dispatch_any(ledger, 1801.0) is None
    held_back = ledger.waiting("small", 1801.0)
    assert (held_back.kind, held_back.holders) == ("reservation", ("big",))
    assert held_back.detail == (
        "write:path:b is reserved for big, which waited too long"
    )
    assert held_back.resource == "write:path:b"
    assert ledger.state_of("small", held_back) == "waiting_for_workspace"
    starving = ledger.waiting("big", 1801.0)
    assert (starving.kind, starving.holders) == ("claim", ("holder",))
    assert "its claims are reserved for it" in starving.detail


def test_a_job_that_has_not_waited_too_long_speaks_of_no_reservation() -> None:
    ledger = starving_ledger()
    assert "reserved" not in ledger.waiting("big", AFTER - 1).detail


def test_a_more_urgent_job_is_not_held_back_by_a_reservation() -> None:
    ledger = starving_ledger()
    urgent = make_job("urgent", "write:path:b", priority=0, queued_at=1801.0)
    ledger.add(urgent, (), 1801.0)
    assert dispatch_any(ledger, 1801.0) == "urgent"


def test_an_urgent_job_passes_those_like_it_that_are_held_back() -> None:
    ledger = starving_ledger()
    ledger.add(make_job("small", "write:path:b", queued_at=1801.0), (), 1801.0)
    assert dispatch_any(ledger, 1801.0) is None
    urgent = make_job("urgent", "write:path:b", priority=0, queued_at=1802.0)
    ledger.add(urgent, (), 1802.0)
    assert dispatch_any(ledger, 1802.0) == "urgent"
    assert dispatch_any(ledger, 1802.0) is None, "small is still held back"


def test_a_starving_job_that_is_cancelled_holds_nobody_back() -> None:
    ledger = starving_ledger()
    ledger.add(make_job("small", "write:path:b", queued_at=1801.0), (), 1801.0)
    assert dispatch_any(ledger, 1801.0) is None
    ledger.cancel("big", 1802.0)
    assert dispatch_any(ledger, 1802.0) == "small"


def test_when_the_first_of_two_like_jobs_is_cancelled_the_second_starves_on() -> None:
    ledger = starving_ledger()
    second = make_job("second", "write:path:a", "write:path:b", queued_at=1.0)
    ledger.add(second, (), 1.0)
    ledger.add(make_job("small", "write:path:b", queued_at=1802.0), (), 1802.0)
    assert dispatch_any(ledger, 1802.0) is None
    ledger.cancel("big", 1802.0)
    assert dispatch_any(ledger, 1802.0) is None
    assert ledger.waiting("small", 1802.0).holders == ("second",)


def test_an_urgent_job_that_joins_a_blocked_one_starves_in_its_own_time() -> None:
    ledger = Ledger("repo", overtake_after=AFTER)
    ledger.add(make_job("holder", "write:path:a", priority=0), (), 0.0)
    assert dispatch_any(ledger, 0.0) == "holder"
    ledger.add(make_job("low", "write:path:a", "write:path:b", priority=4), (), 0.0)
    assert dispatch_any(ledger, 0.0) is None
    ledger.announce(AFTER)
    top = make_job("top", "write:path:a", "write:path:b", priority=0, queued_at=AFTER)
    ledger.add(top, (), AFTER)
    later = 2 * AFTER + 1
    middle = make_job("middle", "write:path:b", priority=1, queued_at=later)
    ledger.add(middle, (), later)
    assert dispatch_any(ledger, later) is None
    assert ledger.waiting("middle", later).holders == ("top",)


def test_two_starving_jobs_do_not_wait_for_each_other() -> None:
    ledger = Ledger("repo", overtake_after=AFTER)
    for name, path in (("h1", "a"), ("h2", "b")):
        ledger.add(make_job(name, f"write:path:{path}"), (), 0.0)
        assert dispatch_any(ledger, 0.0) == name
    ledger.add(make_job("x", "write:path:a", "write:path:c"), (), 0.0)
    ledger.add(make_job("y", "write:path:b", "write:path:c"), (), 0.0)
    assert dispatch_any(ledger, 2000.0) is None
    end_attempt(ledger, "h2", 1, SUCCESS, None, 2000.0)
    assert dispatch_any(ledger, 2001.0) is None, "c is kept for x"
    end_attempt(ledger, "h1", 1, SUCCESS, None, 2002.0)
    assert dispatch_any(ledger, 2002.0) == "x"
    end_attempt(ledger, "x", 1, SUCCESS, None, 2003.0)
    assert dispatch_any(ledger, 2003.0) == "y"


def test_two_jobs_whose_order_ageing_turned_do_not_hold_back_each_other() -> None:
    ledger = Ledger("repo", overtake_after=AFTER)
    ledger.add(make_job("holder", "write:path:a", priority=0), (), 0.0)
    assert dispatch_any(ledger, 0.0) == "holder"
    ledger.add(make_job("low", "write:path:a", priority=4), (), 0.0)
    ledger.add(make_job("top", "write:path:a", priority=0, kind="check"), (), 0.0)
    assert dispatch_any(ledger, 0.0) is None
    ledger.announce(AFTER)
    end_attempt(ledger, "holder", 1, SUCCESS, None, AFTER)
    # For low, top comes first. Two hours later both are most urgent, and low has the
    # smaller id, so that it comes first for top.
    assert ledger.dispatch(("workers",), AFTER + 1)[1] is None
    assert ledger.dispatch(("workers", "heavy_checks"), 4 * AFTER + 1)[1] is None
    ledger.announce(4 * AFTER + 5)
    assert dispatch_any(ledger, 4 * AFTER + 5) == "low"


# -- long queues -----------------------------------------------------------------------


class Counter:
    """Counts the questions whether claims are free."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(
        self, wanted: tuple[Claim, ...], held: tuple[Claim, ...]
    ) -> Claim | None:
        self.calls += 1
        return first_conflict(wanted, held)


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    counting = Counter()
    monkeypatch.setattr(lanes, "first_conflict", counting)
    return counting


def run_all(ledger: Ledger, now: float) -> int:
    """Run job after job, as the actor does; how many there were."""
    count = 0
    while not ledger.idle:
        while dispatch_any(ledger, now) is not None:
            ledger.offers(now)
        for name in list(ledger.leases):
            end_attempt(ledger, name, 1, SUCCESS, None, now)
            count += 1
    return count


def test_twenty_thousand_jobs_with_one_claim_cost_a_few_looks_each(
    counter: Counter,
) -> None:
    count = 20_000
    ledger = Ledger("repo")
    for number in range(count):
        job = make_job(f"j{number:05}", "write:repo-content:*", queued_at=float(number))
        ledger.add(job, (), float(number))
        ledger.offers(float(number))
    assert counter.calls <= 2 * count
    assert run_all(ledger, float(count)) == count
    assert counter.calls <= 5 * count


def test_blocked_jobs_are_not_looked_at_again_until_their_holder_ends(
    counter: Counter,
) -> None:
    count = 2_000
    ledger = Ledger("repo")
    ledger.add(make_job("holder", "exclusive:repo-content:*", priority=0), (), 0.0)
    for number in range(count):
        ledger.add(make_job(f"j{number}", f"write:path:p{number}"), (), 0.0)
    assert dispatch_any(ledger, 0.0) == "holder"
    assert dispatch_any(ledger, 0.0) is None
    looked = counter.calls
    # Each lane with itself when it is made, and once with the holder.
    assert looked <= 2 * (count + 1)
    for number in range(500):
        ledger.add(make_job(f"k{number}", "write:path:p7"), (), 0.0)
        assert ledger.offers(0.0) == ()
    assert counter.calls == looked


def test_jobs_of_many_lanes_cost_as_many_looks_as_there_are_workers(
    counter: Counter,
) -> None:
    count = 2_000
    ledger = Ledger("repo", workers=4)
    for number in range(count):
        ledger.add(make_job(f"j{number}", f"write:path:p{number}"), (), 0.0)
    assert run_all(ledger, 0.0) == count
    assert counter.calls <= 4 * 4 * count
