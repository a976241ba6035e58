"""What all tests of the runtime have in common."""

from __future__ import annotations

import pytest

from forge_actors.edges.cleanup import process


@pytest.fixture(autouse=True)
def in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tests keep all of the machine busy, the last in line waits for ever."""
    monkeypatch.setattr(process, "_put_last_in_line", lambda _: None)
