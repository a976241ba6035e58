"""Budgets of a day, and of a job."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.agents import Budget, Usage
from forge_actors.domain.day_budgets import (
    DAY,
    DayBudgets,
    DayUse,
    spent_budgets,
    spent_by_job,
)

USES = [
    DayUse("r1", "app", "claude", 2.0, 100),
    DayUse("r1", "app", "codex", 0.0, 500),
    DayUse("r2", "web", "claude", 3.0, 10),
]


def scopes(budgets: DayBudgets) -> list[tuple[str, str | None]]:
    return [(each.token, each.repo) for each in spent_budgets(budgets, USES, 0.0)]


def test_each_budget_counts_what_is_its_own() -> None:
    assert not DayBudgets()
    assert not DayBudgets(stop=True)
    assert DayBudgets(providers={"codex": Budget(tokens=1)})
    assert scopes(DayBudgets(home=Budget(cost=5.0))) == [("agents", None)]
    assert scopes(DayBudgets(home=Budget(cost=5.01))) == []
    assert scopes(DayBudgets(home=Budget(tokens=610))) == [("agents", None)]
    providers = {"claude": Budget(cost=5.0), "codex": Budget(cost=0.01, tokens=501)}
    assert scopes(DayBudgets(providers=providers)) == [("provider:claude", None)]
    repositories = {"app": Budget(tokens=600), "web": Budget(cost=4.0), "x": Budget(1)}
    assert scopes(DayBudgets(repositories=repositories)) == [("agents", "r1")]


def test_it_says_which_budget_it_is_and_until_when() -> None:
    budgets = DayBudgets(providers={"claude": Budget(cost=4.0)})
    [spent] = spent_budgets(budgets, USES, 10 * DAY)
    assert (spent.since, spent.until) == (10 * DAY, 11 * DAY)
    assert spent.detail == (
        "the budget of claude for today is spent: $5.00 of $4.00 are used"
    )


TOKENS = st.integers(0, 1000)


@given(st.integers(1, 1000), TOKENS, st.none() | TOKENS, st.none() | TOKENS)
def test_a_job_has_spent_its_budget_from_the_last_token_on(
    limit: int, before: int, read: int | None, written: int | None
) -> None:
    told = Usage(read, written)
    found = spent_by_job(Budget(tokens=limit), Budget(0.0, before), told)
    used = before + (read or 0) + (written or 0)
    assert (found is not None) == (used >= limit)
    assert spent_by_job(Budget(cost=0.01), Budget(0.0, before), told) is None
