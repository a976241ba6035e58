"""Budgets: what agents may use in a day, and what a job may use in all of its attempts.

Those of a day are of the home, of a provider or of a repository. Once one is spent
nothing of it starts until the next day in UTC begins. What is unknown counts as
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.agents import Budget
from forge_actors.domain.capacity import AGENTS, provider_token

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from forge_actors.domain.agents import Usage

#: Seconds of a day.
DAY = 86400.0


class DayBudgets(Struct, frozen=True):
    """Those of a day. The repositories are called by their names."""

    home: Budget = Budget()
    providers: Mapping[str, Budget] = {}
    repositories: Mapping[str, Budget] = {}
    #: End what runs too, once its budget is spent.
    stop: bool = False

    def __bool__(self) -> bool:
        inner = (*self.providers.values(), *self.repositories.values())
        return any((self.home, *inner))


class DayUse(Struct, frozen=True):
    """What agents of one provider used in one repository today, as far as known."""

    repo: str
    #: Of the repository.
    name: str
    provider: str | None
    cost: float
    tokens: int


class SpentBudget(Struct, frozen=True):
    """A budget that is spent: no job with this token starts, in one repository or in
    all, from a moment until another one."""

    token: str
    since: float
    until: float
    detail: str
    repo: str | None = None
    #: As the settings call it: `home`, `providers.NAME` or `repositories.NAME`.
    scope: str = "home"
    budget: Budget = Budget()


def spent_budgets(
    budgets: DayBudgets, uses: Iterable[DayUse], since: float
) -> tuple[SpentBudget, ...]:
    """Those that are spent on the day that began at `since`."""
    return tuple(_spent(budgets, list(uses), since))


def _spent(
    budgets: DayBudgets, uses: list[DayUse], since: float
) -> Iterator[SpentBudget]:
    def look(
        budget: Budget, mine: list[DayUse], scope: str, token: str, repo: str | None
    ) -> Iterator[SpentBudget]:
        cost, tokens = sum(u.cost for u in mine), sum(u.tokens for u in mine)
        found = budget.spent_by(cost, tokens)
        if found is not None:
            what = scope.partition(".")[2] or "this home"
            words = f"the budget of {what} for today is spent: {found}"
            until = since + DAY
            yield SpentBudget(token, since, until, words, repo, scope, budget)

    yield from look(budgets.home, uses, "home", AGENTS, None)
    for name, budget in budgets.providers.items():
        mine = [use for use in uses if use.provider == name]
        yield from look(budget, mine, f"providers.{name}", provider_token(name), None)
    for name, budget in budgets.repositories.items():
        mine = [use for use in uses if use.name == name]
        if mine:  # else its id is not known, and it has spent nothing
            repo = mine[0].repo
            yield from look(budget, mine, f"repositories.{name}", AGENTS, repo)


def spent_by_job(budget: Budget, before: Budget, told: Usage | None) -> str | None:
    """Whether a job has spent its own budget: it had used `before` so much, and now
    what it told."""
    cost, tokens = before.cost or 0.0, before.tokens or 0
    if told is not None:
        cost += told.cost or 0.0
        tokens += (told.input_tokens or 0) + (told.output_tokens or 0)
    found = budget.spent_by(cost, tokens)
    return None if found is None else f"the budget of this job is spent: {found}"
