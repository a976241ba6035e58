"""Money and budgets as people read them."""

from __future__ import annotations

import pytest

from forge_actors.cli.account_text import spent_lines
from forge_actors.cli.usage import _row

SPENT = {
    "scope": "providers.codex",
    "detail": "the budget of codex for today is spent: 127 of 100 tokens are used",
    "until": "2026-12-01T00:00:00.000Z",
}


def test_the_status_has_a_line_for_each_spent_budget_and_says_what_helps() -> None:
    assert spent_lines([]) == []
    head, line = spent_lines([SPENT])
    assert head == "budgets"
    assert SPENT["detail"] in line
    assert SPENT["until"] in line
    assert "forge-actors settings reload" in line


def test_nothing_of_a_budget_reaches_the_terminal_as_more_than_text() -> None:
    _, line = spent_lines([{**SPENT, "detail": "\x1b[2J of \u202eapp"}])
    assert line.isprintable()


@pytest.mark.parametrize(
    ("cost", "unknown", "shown"),
    [
        (None, 1, "?"),
        (0.0, 0, "$0.00"),
        (0.000777, 0, "$0.0008"),
        (0.000777, 1, ">=$0.0008"),
        (0.01, 0, "$0.01"),
        (1234.5, 0, "$1,234.50"),
    ],
)
def test_little_money_is_not_shown_as_none(
    cost: float | None, unknown: int, shown: str
) -> None:
    sums = dict.fromkeys(("input_tokens", "cached_tokens", "output_tokens"), 0)
    told = {"attempts": 2, "cost": cost, "unknown": {"cost": unknown}, **sums}
    if not unknown:
        told["unknown"] = {}
    assert _row("app", told)[-1] == shown
