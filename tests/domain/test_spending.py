"""Sums of usage: nothing is lost in them, and what is unknown stays so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.agents import Usage
from forge_actors.domain.spending import (
    COUNTED,
    MAX_COST,
    MAX_TOKENS,
    AttemptUsage,
    credible,
    sum_of,
    summed,
    used_before,
)

TOKENS = st.none() | st.integers(0, MAX_TOKENS)
USAGES = st.lists(
    st.builds(Usage, TOKENS, TOKENS, TOKENS, st.none() | st.integers(0, 1000)),
    max_size=20,
)


@given(USAGES, st.integers(0, 20))
def test_a_sum_is_that_of_its_parts_however_they_are_divided(
    parts: list[Usage], place: int
) -> None:
    whole, one, other = summed("k", parts), parts[:place], parts[place:]
    divided = [summed("k", one), summed("k", other)]
    assert whole.attempts == sum(each.attempts for each in divided)
    for name in COUNTED:
        known = [getattr(part, name) for part in parts]
        told = [value for value in known if value is not None]
        assert getattr(whole, name) == (sum(told) if told else None)
        assert whole.unknown.get(name, 0) == len(known) - len(told)
        assert whole.unknown.get(name, 0) == sum(
            each.unknown.get(name, 0) for each in divided
        )


@given(USAGES)
def test_a_row_of_a_store_is_the_same_sum(parts: list[Usage]) -> None:
    columns = {name: [getattr(part, name) for part in parts] for name in COUNTED}
    told = {
        name: [value for value in column if value is not None]
        for name, column in columns.items()
    }
    sums = [sum(told[name]) if told[name] else None for name in COUNTED]
    counts = [len(told[name]) for name in COUNTED]
    assert sum_of(("k", len(parts), *sums, *counts)) == summed("k", parts)


def test_cumulative_totals_come_to_the_last_one() -> None:
    """Whatever the attempts of a session told, and whichever told nothing."""

    @given(st.lists(st.none() | st.integers(0, 1000), min_size=1, max_size=8))
    def check(steps: list[int | None]) -> None:
        rows: list[AttemptUsage] = []
        total = silent = 0
        for attempt, step in enumerate(steps, start=1):
            before = used_before(rows) if rows else Usage(0, 0, 0)
            assert before is not None
            usage = Usage()
            if step is None:
                silent += 5  # it used something, and did not say so
            else:
                total += step + silent
                silent = 0
                usage = Usage(total, total, total).since(before)
            rows.append(row(attempt, usage, resumed=attempt > 1))
        known = summed(None, [each.usage for each in rows])
        assert (known.input_tokens or 0) == total

    check()


def row(attempt: int, usage: Usage, *, resumed: bool) -> AttemptUsage:
    return AttemptUsage(
        "job", attempt, "repo", "codex", "codex", usage, 1.0, "s", resumed
    )


def test_a_session_whose_beginning_is_not_ours_is_not_known() -> None:
    assert used_before([]) is None
    assert used_before([row(1, Usage(5), resumed=True)]) is None


@pytest.mark.parametrize("value", [-1, MAX_TOKENS + 1])
def test_what_no_program_can_have_used_is_unknown(value: int) -> None:
    assert credible(Usage(value, 1, value, float(value))) == Usage(
        None, 1, None, None if value < 0 or value > MAX_COST else value
    )
    assert credible(Usage(cost=float("inf"))) == Usage()
    assert credible(Usage(cost=float("nan"))) == Usage()
