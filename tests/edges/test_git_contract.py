"""The git program and folders in place of repositories keep the same contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors.edges.git.checkout import GitProgram
from forge_actors.testing.folders import FolderGit
from forge_actors.testing.folders import make_repository as make_folder
from forge_actors.testing.git_contract import CHECKS
from tests.runtime.kit import make_repository

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.testing.git_contract import Check


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_git_program_keeps_it(check: Check, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    await check(GitProgram(), make_repository(tmp_path / "app"), other)


@pytest.mark.mock_clock
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_folders_keep_it(check: Check, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    await check(FolderGit(), make_folder(tmp_path / "app"), other)
