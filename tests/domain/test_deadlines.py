"""Durations as people write them, and the bounds of time budgets."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.deadlines import (
    MAX_BUDGET,
    MIN_BUDGET,
    default_execution,
    parse_budget,
    parse_duration,
)
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.jobs import KINDS, Kind


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (90, 90.0),
        (1.5, 1.5),
        ("90", 90.0),
        ("90s", 90.0),
        (" 90 S ", 90.0),
        ("250ms", 0.25),
        ("30m", 1800.0),
        ("1.5h", 5400.0),
        ("2d", 172_800.0),
        ("0", 0.0),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text: str | float, seconds: float) -> None:
    assert parse_duration(text, field="timeout") == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    ["", "s", "soon", "1h30m", "10 min", "5w", "-1s", "nan", "inf", "1e999", "0x10"],
)
def test_anything_else_is_refused_and_the_field_named(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_duration(text, field="jobs[3].timeout")
    assert caught.value.field == "jobs[3].timeout"


@pytest.mark.parametrize("number", [-1.0, float("nan"), float("inf")])
def test_a_number_that_is_no_duration_is_refused(number: float) -> None:
    with pytest.raises(InvalidInput):
        parse_duration(number, field="timeout")


@pytest.mark.parametrize("text", ["1s", "30d", MIN_BUDGET, MAX_BUDGET])
def test_a_budget_lies_between_a_second_and_thirty_days(text: str | float) -> None:
    assert MIN_BUDGET <= parse_budget(text, field="timeout") <= MAX_BUDGET


@pytest.mark.parametrize("text", ["0", "999ms", "31d", MAX_BUDGET + 1])
def test_a_budget_outside_its_bounds_is_refused(text: str | float) -> None:
    with pytest.raises(InvalidInput, match="outside 1s to 30d"):
        parse_budget(text, field="timeout")


@pytest.mark.parametrize("kind", KINDS)
def test_only_checks_and_agents_have_a_time_limit_of_their_own(kind: Kind) -> None:
    hours = {"check": 1, "verify-edit": 1, "agent-run": 12, "dispatch-task": 12}
    limit = hours[kind] * 3600.0 if kind in hours else None
    assert default_execution(kind) == limit


@given(st.integers(0, 10**6), st.sampled_from(["s", "m", "h", "d"]))
def test_text_and_number_mean_the_same(count: int, unit: str) -> None:
    factor = {"s": 1, "m": 60, "h": 3600, "d": 86_400}[unit]
    assert parse_duration(f"{count}{unit}", field="x") == count * factor


@given(st.text(max_size=12))
def test_any_text_is_a_duration_or_an_input_error(text: str) -> None:
    with suppress(InvalidInput):
        assert 0 <= parse_duration(text, field="x") < float("inf")
