"""A run of a single issue holds its issue back, and no other."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from forge_actors.domain.epic.standalone import held_issue
from forge_actors.testing.epic.records import EXPECTED, made_state

PHASES = ("prepare", "implement", "check", "review")
SETTLED = ("ready_for_merge", "blocked", "failed")


@pytest.mark.parametrize("phase", [*PHASES, *SETTLED])
def test_an_issue_is_held_until_it_is_done(phase: Any) -> None:
    assert held_issue(made_state(12, phase), EXPECTED) == 12


def test_what_is_done_or_not_there_holds_nothing() -> None:
    assert held_issue(made_state(12, "done"), EXPECTED) is None
    assert held_issue(None, EXPECTED) is None


@pytest.mark.parametrize(
    ("url", "held"),
    [
        ("https://github.com/Octo/DEMO/issues/5", 5),
        ("https://ghe.example/octo/demo/issues/5", 5),
        ("https://github.com/octo/other/issues/5", None),
        ("https://github.com/other/demo/issues/5", None),
        ("https://github.com/octo/demo/pull/5", None),
        ("octo/demo#5", None),
        ("", None),
    ],
)
def test_whose_it_is_tells_its_url(url: str, held: int | None) -> None:
    state = structs.replace(made_state(12), issue_url=url)
    assert held_issue(state, EXPECTED) == held
