"""Spent budgets of a day, as the status tells of them and as items of the inbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.inbox import Item

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from forge_actors.domain.day_budgets import SpentBudget

#: By what the usage of a day is looked at, for the budget of each kind of scope.
_LOOKED_AT = {"home": "provider", "providers": "repo", "repositories": "provider"}
#: Characters of a moment that are its day.
_DAY = 10


class SpentBudgetView(Struct, frozen=True):
    """One that is spent, as readers see it: no agent of it starts before `until`."""

    #: `home`, `providers.NAME` or `repositories.NAME`, as the settings have it.
    scope: str
    detail: str
    until: str


def spent_view(spent: SpentBudget, moment: Callable[[float], str]) -> SpentBudgetView:
    return SpentBudgetView(spent.scope, spent.detail, moment(spent.until))


def spent_items(
    spent: Iterable[SpentBudget], moment: Callable[[float], str]
) -> list[Item]:
    """An item for each, until its day is over or somebody allows more."""
    return [_item(each, moment) for each in spent]


def _item(spent: SpentBudget, moment: Callable[[float], str]) -> Item:
    kind, _, name = spent.scope.partition(".")
    section = "budgets" if kind == "home" else f"budgets.{spent.scope}"
    since, until = moment(spent.since), moment(spent.until)
    # One that was raised and is spent again is another item.
    item = f"budget:{spent.scope}:{since[:_DAY]}:{spent.budget.amount}"
    return Item(
        id=item,
        kind="budget",
        says=f"{spent.detail}; no agent of it starts before {until}",
        since=since,
        repo=name if kind == "repositories" else None,
        job=None,
        evidence={"settings": f"[{section}]", "until": until},
        actions=[
            f"forge-actors usage --since 1d --by {_LOOKED_AT[kind]}",
            "forge-actors settings reload",
            f"forge-actors inbox dismiss {item}",
        ],
    )
