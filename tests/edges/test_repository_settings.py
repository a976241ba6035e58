"""The settings file of a repository: whose it may be, and what it may say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from forge_actors.domain.errors import WorktreeFailed
from forge_actors.edges.git.repository_settings import read_settings
from forge_actors.testing.worktree_contract import planned
from tests.edges.worktree_ground import GitGround, make

if TYPE_CHECKING:
    pass


@pytest.fixture
def ground(tmp_path: Path) -> GitGround:
    return GitGround(tmp_path)


def test_without_a_file_there_are_no_commands(ground: GitGround) -> None:
    assert read_settings(str(ground.common_dir)).setup == ()


def test_the_commands_and_their_time_are_read(ground: GitGround) -> None:
    ground.settings(
        "[worktree]\n"
        'setup = ["npm ci", "make"]\nsetup_timeout = "5m"\nbranch = "x/{job}"'
    )
    found = read_settings(str(ground.common_dir))
    assert (found.setup, found.setup_seconds) == (("npm ci", "make"), 300.0)
    assert found.worktree.branch == "x/{job}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[worktree]\nsetup = 3", "worktree.setup"),
        ('[worktree]\nsetup = [""]', "worktree.setup[0]: is no command"),
        ('[worktree]\nsteup = ["x"]', "did you mean 'setup'"),
        ("[worktre]\n", "worktre"),
        ('[worktree]\nsetup_timeout = "0s"', "setup_timeout"),
        ('[worktree]\nbranch = "a b"', "worktree.branch"),
        ("[worktree\n", "at line 1"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(
    text: str, words: str, ground: GitGround
) -> None:
    path = ground.settings(text)
    with pytest.raises(WorktreeFailed) as failed:
        read_settings(str(ground.common_dir))
    assert str(path) in str(failed.value)
    assert words in str(failed.value)


def test_a_file_of_others_runs_nothing(ground: GitGround, tmp_path: Path) -> None:
    path = ground.settings("")
    path.chmod(0o666)
    with pytest.raises(WorktreeFailed, match="written by everybody"):
        read_settings(str(ground.common_dir))
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WorktreeFailed, match="is a link"):
        read_settings(str(ground.common_dir))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(WorktreeFailed, match="is no file"):
        read_settings(str(ground.common_dir))
    path.unlink()
    if os.geteuid() == 0:
        path.touch()
        os.chown(path, 65534, 65534)
        with pytest.raises(WorktreeFailed, match="belongs to another user"):
            read_settings(str(ground.common_dir))


async def test_the_pattern_of_the_job_beats_that_of_the_repository(
    ground: GitGround,
) -> None:
    ground.settings('[worktree]\nbranch = "theirs/{job}"')
    await make(ground, "one")
    await make(ground, "two", pattern="mine/{job}")
    assert set(ground.branches()) == {"theirs/one", "mine/two"}


async def test_an_entered_one_has_its_set_up_until_that_was_done(
    ground: GitGround,
) -> None:
    ground.settings('[worktree]\nsetup = ["true"]')
    wanted = ground.wanted("job")
    known = await planned(ground.worktrees(), wanted)
    made = await ground.worktrees().make(wanted, known)
    ready = structs.replace(known, state="ready")
    assert made.place.setup == ("true",)
    entered = await ground.worktrees().enter(wanted, ready)
    assert entered.place.setup == ("true",)
    Path(made.place.setup_state).write_text('{"done": true}')
    entered = await ground.worktrees().enter(wanted, ready)
    assert entered.place.setup == ()
