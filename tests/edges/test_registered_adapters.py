"""Adapters that a program registers itself, in place of an entry point."""

from __future__ import annotations

import pytest

from forge_actors.adapters import register
from forge_actors.domain.errors import InvalidInput
from forge_actors.edges.agents import finding
from forge_actors.edges.agents.command import Command


class Mine(Command):
    name = "mine"


@pytest.fixture(autouse=True)
def none_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "_registered", {})


def test_one_is_found_under_its_name() -> None:
    with pytest.raises(InvalidInput, match="'mine' is no known agent"):
        finding.adapter("mine")
    first, second = Mine(), Mine()
    register(first)
    assert finding.adapter("mine") is first
    assert "mine" in finding.adapter_names()
    register(second)
    assert finding.adapter("mine") is second


def test_one_that_is_installed_is_not_replaced() -> None:
    with pytest.raises(InvalidInput, match="'command' is installed, by an entry point"):
        register(Command())


def test_one_that_lacks_something_is_refused() -> None:
    class Half:
        name = "half"

    with pytest.raises(InvalidInput, match="it has no provider, program"):
        register(Half())  # type: ignore[arg-type]
