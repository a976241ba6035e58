"""Ageing, and the order of the jobs of one repository."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.priority import (
    AGEING_STEP,
    DEFAULT_PRIORITY,
    PRIORITIES,
    bound,
    effective,
    rank,
)

TIMES = st.floats(0, 1e9)
LEVELS = st.integers(0, len(PRIORITIES) - 1)


@pytest.mark.parametrize(
    ("priority", "waited", "aged"),
    [
        (4, 0, 4),
        (4, AGEING_STEP - 1, 4),
        (4, AGEING_STEP, 3),
        (4, 2 * AGEING_STEP, 2),
        (4, 4 * AGEING_STEP, 0),
        (4, 100 * AGEING_STEP, 0),
        (2, AGEING_STEP, 1),
        (0, 10 * AGEING_STEP, 0),
    ],
)
def test_a_job_gains_one_step_every_half_hour_until_it_is_most_urgent(
    priority: int, waited: float, aged: int
) -> None:
    assert effective(priority, 1000.0, 1000.0 + waited) == aged


def test_a_clock_that_was_set_back_raises_nothing() -> None:
    assert effective(3, queued_at=1e9, now=0.0) == 3


def test_the_default_priority_is_in_the_middle() -> None:
    assert PRIORITIES.index(DEFAULT_PRIORITY) == len(PRIORITIES) // 2


def test_the_order_is_effective_priority_then_queue_time_then_id() -> None:
    now = AGEING_STEP
    in_order = [
        rank(0, now, "z", now),
        rank(2, 0.0, "a", now),  # aged to 1
        rank(1, 1.0, "a", now),
        rank(1, 1.0, "b", now),
        rank(2, 1.0, "a", now),
    ]
    assert in_order == sorted(in_order)
    assert len(set(in_order)) == len(in_order)


@given(LEVELS, TIMES, TIMES, TIMES)
def test_waiting_never_makes_a_job_less_urgent(
    priority: int, queued_at: float, one: float, other: float
) -> None:
    sooner, later = sorted((one, other))
    before = effective(priority, queued_at, sooner)
    after = effective(priority, queued_at, later)
    assert 0 <= after <= before <= priority


@given(LEVELS, TIMES, TIMES, TIMES)
def test_of_two_jobs_of_one_priority_the_older_comes_first_at_any_time(
    priority: int, one: float, other: float, now: float
) -> None:
    older, newer = sorted((one, other))
    assert rank(priority, older, "a", now) <= rank(priority, newer, "b", now)


@pytest.mark.parametrize("priority", range(5))
def test_a_bound_parts_those_before_a_place_from_those_behind_it(priority: int) -> None:
    now = 100_000.0
    queued = [now - 701.0 * number for number in range(12)]
    for other, since in itertools.product(range(5), queued):
        place = rank(other, since, "m", now)
        limit = bound(priority, place, now)
        for at, job in itertools.product(queued, ("a", "z")):
            before = rank(priority, at, job, now) < place
            assert before == ((at, job) < limit), (place, at, job)
