"""Fixtures of the tests of verbs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.shell import Shell

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path, capsys)
