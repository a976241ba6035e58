"""A fixture of the tests that run agents: programs that play them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from forge_actors.testing.agents import NAMES, FakeAgent, install

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeAgent]:
    """Programs that play agents, on the PATH."""
    folder = tmp_path / "bin"
    found = {name: install(folder, name) for name in NAMES}
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    return found
