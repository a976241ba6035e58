"""Supervision: who is restarted, and when a supervisor gives up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.restarts import (
    Escalation,
    Restart,
    RestartHistory,
    RestartPolicy,
    wants_restart,
)


@pytest.mark.parametrize(
    ("restart", "failed", "again"),
    [
        ("permanent", True, True),
        ("permanent", False, True),
        ("transient", True, True),
        ("transient", False, False),
        ("temporary", True, False),
        ("temporary", False, False),
    ],
)
def test_the_type_of_a_child_says_whether_it_is_restarted(
    restart: Restart, failed: bool, again: bool
) -> None:
    assert wants_restart(restart, failed=failed) is again


def test_intensity_restarts_are_allowed_and_one_more_is_not() -> None:
    history = RestartHistory(RestartPolicy(intensity=3, period=10.0))
    assert [history.allow(float(n)) for n in range(4)] == [True, True, True, False]


def test_a_restart_that_left_the_period_counts_no_more() -> None:
    history = RestartHistory(RestartPolicy(intensity=1, period=10.0))
    assert history.allow(0.0)
    assert not history.allow(10.0)  # ten seconds later is still within ten seconds
    assert history.allow(20.5)


def test_with_intensity_zero_the_first_failure_is_one_too_many() -> None:
    assert not RestartHistory(RestartPolicy(intensity=0, period=10.0)).allow(0.0)


@given(st.integers(0, 6), st.lists(st.integers(0, 20), max_size=60), st.integers(1, 50))
def test_a_restart_is_refused_exactly_when_the_period_holds_too_many(
    intensity: int, gaps: list[int], period: int
) -> None:
    history = RestartHistory(RestartPolicy(intensity=intensity, period=period))
    now, times = 0, []
    for gap in gaps:
        now += gap
        times.append(now)
        recent = [time for time in times if time >= now - period]
        assert history.allow(now) is (len(recent) <= intensity)


def test_what_fails_on_is_restarted_with_care_and_then_not_at_all() -> None:
    failures = Escalation(RestartPolicy(intensity=2, period=10.0))
    stages = [failures.failed(float(second)) for second in range(6)]
    assert stages == ["usual", "usual", "careful", "careful", "careful", "aside"]


def test_what_fails_seldom_is_restarted_as_usual() -> None:
    failures = Escalation(RestartPolicy(intensity=2, period=10.0))
    assert {failures.failed(6.0 * n) for n in range(50)} == {"usual"}
