"""The section `[budgets]`: what agents may use in a day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from forge_actors.domain.agents import Budget
from forge_actors.domain.day_budgets import DayBudgets

if TYPE_CHECKING:
    from forge_actors.domain.settings import Value

Cost = Annotated[float, Meta(gt=0, le=1e9)]
Tokens = Annotated[int, Meta(ge=1, le=10**15)]


class BudgetTable(Struct, frozen=True, forbid_unknown_fields=True):
    #: US dollars in a day of UTC, as far as the programs tell what they cost.
    cost: Cost | None = None
    #: Tokens in a day of UTC, read and written.
    tokens: Tokens | None = None

    def budget(self) -> Budget:
        return Budget(self.cost, self.tokens)


class BudgetSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What agents may use in a day: all of them, of one provider, in one repository."""

    cost: Cost | None = None
    tokens: Tokens | None = None
    #: End what runs too once a budget is spent, also that of a job.
    stop: bool = False
    providers: dict[str, BudgetTable] = {}
    #: By their names.
    repositories: dict[str, BudgetTable] = {}

    def budgets(self) -> DayBudgets:
        return DayBudgets(
            Budget(self.cost, self.tokens),
            {name: table.budget() for name, table in self.providers.items()},
            {name: table.budget() for name, table in self.repositories.items()},
            self.stop,
        )

    def values(self) -> dict[str, Value]:
        """Every setting by its full name."""
        values: dict[str, Value] = {
            "budgets.cost": self.cost,
            "budgets.tokens": self.tokens,
            "budgets.stop": self.stop,
        }
        for kind in ("providers", "repositories"):
            for name, table in sorted(getattr(self, kind).items()):
                values[f"budgets.{kind}.{name}.cost"] = table.cost
                values[f"budgets.{kind}.{name}.tokens"] = table.tokens
        return values
