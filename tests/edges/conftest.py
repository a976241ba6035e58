"""What the tests of the edges are given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.edges.node_jobs import end_agent, lasting_time

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def durable_home(tmp_path: Path) -> Iterator[Path]:
    """A home whose agent may outlive the test's launcher, not the test."""
    tmp_path.chmod(0o700)
    yield tmp_path
    end_agent(tmp_path)


@pytest.fixture
def lasting() -> str:
    """A time to sleep, in seconds, by which the sleeper can be found."""
    return lasting_time()
