"""What the tests of the edges are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.edges.node_jobs import lasting_time


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def lasting() -> str:
    """A time to sleep, in seconds, by which the sleeper can be found."""
    return lasting_time()
