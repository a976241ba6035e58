"""Whether an agent that runs has spent a budget, by what it has told so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.agents import Budget
from forge_actors.domain.day_budgets import (
    DAY,
    DayUse,
    spent_budgets,
    spent_by_job,
)
from forge_actors.domain.spending import credible

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.agents import Usage
    from forge_actors.domain.jobs import JobSpec
    from forge_actors.domain.ports import Clock
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.settings import Settings


class BudgetGuard:
    """Looks at the store, and at what one attempt told that is not there yet."""

    def __init__(
        self, store: SqliteStore, settings: Callable[[], Settings], clock: Clock
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock

    @property
    def stops(self) -> bool:
        """Whether what runs is to be ended."""
        return self._settings().budgets.stop

    def of_job(self, job: str, spec: JobSpec, told: Usage | None) -> str | None:
        """That the job has spent its own budget."""
        budget = None if spec.agent is None else spec.agent.budget
        if budget is None:
            return None
        told = None if told is None else credible(told)
        [(cost, tokens)] = self._store.read_pending("usage_of_job", job)
        return spent_by_job(budget, Budget(cost, tokens), told)

    def of_day(self, job: str, told: Usage | None) -> str | None:
        """That a budget of today which is for the job is spent."""
        budgets = self._settings().budgets.budgets()
        if not budgets or told is None:
            return None
        told = credible(told)
        [(repo, name, provider)] = self._store.read_pending("account_of_job", job)
        now = self._clock.wall()
        since = now - now % DAY
        tokens = (told.input_tokens or 0) + (told.output_tokens or 0)
        mine = DayUse(repo, name, provider, told.cost or 0.0, tokens)
        uses = [*self._store.used_since(since), mine]
        of_provider = f"provider:{provider}"
        for spent in spent_budgets(budgets, uses, since):
            other = spent.token.startswith("provider:") and spent.token != of_provider
            if not other and spent.repo in (None, repo):
                return spent.detail
        return None


class AttemptBudget:
    """What one attempt may use."""

    def __init__(self, guard: BudgetGuard, job: str, spec: JobSpec) -> None:
        self._guard = guard
        self._job = job
        self._spec = spec
        self._looked_at: Usage | None = None

    def spent_while_running(self, told: Usage | None) -> str | None:
        """That a budget is spent for which it is to be ended."""
        if told is None or told is self._looked_at or not self._guard.stops:
            return None
        self._looked_at = told
        return self.spent(told) or self._guard.of_day(self._job, told)

    def spent(self, told: Usage | None) -> str | None:
        """That the job has spent its own."""
        return self._guard.of_job(self._job, self._spec, told)
