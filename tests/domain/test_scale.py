"""What very many jobs that waited too long cost: counted in looks, not in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain import in_line, lanes
from forge_actors.domain.capacity import Capacity, Offer, tokens_for
from forge_actors.domain.claims import first_conflict
from forge_actors.domain.lanes import MAX_RESERVING
from forge_actors.domain.ledger import Ledger
from forge_actors.domain.line import Line
from forge_actors.domain.priority import AGEING_STEP, PRIORITIES, bound, rank
from tests.domain.making import (
    SUCCESS,
    dispatch_any,
    end_attempt,
    make_capacity,
    make_job,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from forge_actors.domain.claims import Claim
    from forge_actors.domain.jobs import Job

AFTER = 1800.0
LATE = 2 * AFTER
PLAIN = tokens_for("repository-command", None)
STEPS = st.integers(0, 60).map(lambda tenths: tenths * AGEING_STEP / 10)
LEVELS = st.integers(0, len(PRIORITIES) - 1)
NAMES = st.sampled_from(["a", "b"])


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each question whether claims are free."""
    asked: list[str] = []

    def counted(wanted: Iterable[Claim], held: Iterable[Claim]) -> Claim | None:
        asked.append("look")
        return first_conflict(wanted, held)

    monkeypatch.setattr(lanes, "first_conflict", counted)
    return asked


def long_queue(claims: Callable[[int], tuple[str, ...]], count: int) -> Ledger:
    """A ledger in which a job holds everything and `count` others wait."""
    ledger = Ledger("repo", overtake_after=AFTER, workers=4)
    ledger.add(make_job("holder", "exclusive:repo-content:*", priority=0), (), 0.0)
    assert dispatch_any(ledger, 0.0) == "holder"
    for number in range(count):
        job = make_job(f"j{number:05}", *claims(number), queued_at=number / count)
        ledger.add(job, (), 1.0)
    return ledger


def step(ledger: Ledger, now: float) -> None:
    """All that run end, and as many start as may."""
    for name in list(ledger.leases):
        end_attempt(ledger, name, 1, SUCCESS, None, now)
    while dispatch_any(ledger, now) is not None:
        pass


def test_jobs_with_one_claim_that_waited_too_long_cost_a_few_looks_each(
    looks: list[str],
) -> None:
    ledger = long_queue(lambda _: ("write:repo-content:*",), 2_000)
    assert dispatch_any(ledger, LATE) is None
    looks.clear()
    while not ledger.idle:
        step(ledger, LATE)
    assert len(looks) <= 5 * 2_000


def test_jobs_of_many_claims_that_waited_too_long_are_looked_at_once_a_dispatch(
    looks: list[str],
) -> None:
    count = 1_000
    claims = ("write:repo-content:*",)
    ledger = long_queue(lambda n: (*claims, f"write:build-cache:{n}"), count)
    assert dispatch_any(ledger, LATE) is None
    assert len(looks) <= 3 * count
    for number in range(10):
        looks.clear()
        step(ledger, LATE)
        assert list(ledger.leases) == [f"j{number:05}"], "in the order of their age"
        assert len(looks) <= 2 * count


def test_the_first_ones_alone_reserve_and_the_next_follow_them() -> None:
    count = 3 * MAX_RESERVING
    ledger = long_queue(lambda number: (f"write:path:p{number}",), count)
    assert dispatch_any(ledger, LATE) is None
    reserving = ledger._lanes.reservations(LATE)
    assert [job.id for job in reserving] == [f"j{n:05}" for n in range(MAX_RESERVING)]
    for _ in range(MAX_RESERVING // 4):
        step(ledger, LATE)
    # Those that have not started are parked under nobody any more; held back again by
    # another, the first ones of them reserve.
    ledger.announce(LATE)
    started = {f"j{number:05}" for number in range(MAX_RESERVING + 4)}
    assert started.isdisjoint(job.id for job in ledger._lanes.reservations(LATE))


@given(LEVELS, STEPS, NAMES, LEVELS, STEPS, NAMES)
def test_the_bound_of_a_priority_divides_its_jobs_as_their_ranks_do(
    mine: int, my_time: float, me: str, other: int, its_time: float, name: str
) -> None:
    now = 5 * AGEING_STEP
    place = rank(mine, my_time, me, now)
    before = rank(other, its_time, name, now) < place
    assert ((its_time, name) < bound(other, place, now)) == before


def test_ten_thousand_repositories_that_waited_too_long_cost_one_look_a_grant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = Line({})
    for number in range(10_000):
        repo = f"r{number:05}"
        line.put(repo, [Offer(repo, f"j{number:05}", PLAIN, 2, 0.0)], LATE)
    capacity = make_capacity(workers=2)
    capacity.take("g0", "elsewhere", PLAIN)
    assert line.next(capacity, LATE) is not None
    asked: list[str] = []
    fits = Capacity.fits

    def counted(self: Capacity, repo: str, tokens: Iterable[str]) -> bool:
        asked.append(repo)
        return fits(self, repo, tokens)

    monkeypatch.setattr(Capacity, "fits", counted)
    for number in range(100):
        granted = line.next(capacity, LATE)
        assert granted is not None
        assert granted.repo == f"r{number:05}"
        line.drop(granted.repo)
    assert len(asked) <= 2 * 100


@pytest.mark.parametrize("now", [10.0, LATE])
def test_a_pass_asks_once_for_all_jobs_that_wait_for_the_same(
    monkeypatch: pytest.MonkeyPatch, now: float
) -> None:
    ledger = long_queue(lambda number: (f"write:path:p{number % 5}",), 1_000)
    while ledger.announce(now):
        pass
    states = {job.state for name, job in ledger.jobs.items() if name != "holder"}
    assert states == {"waiting_for_workspace"}
    asked: list[str] = []
    find = in_line.find_blocker

    def counted(job: Job, *rest: Any) -> Any:
        asked.append(job.id)
        return find(job, *rest)

    monkeypatch.setattr(in_line, "find_blocker", counted)
    assert ledger.announce(now) == []
    assert len(asked) == 5
