"""Locks that a job left in a checkout: removed only if nobody can hold them."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.domain.worktrees import LeftLocks
from forge_actors.edges.git.left_locks import GitLocks
from tests.edges.worktree_ground import GitGround, git

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BEGAN, ENDED = 1_000_000.0, 1_000_060.0


@pytest.fixture
def ground(tmp_path: Path) -> GitGround:
    return GitGround(tmp_path)


def lock(ground: GitGround, at: float = BEGAN + 1, name: str = "index.lock") -> Path:
    path = ground.common_dir / name
    path.touch()
    os.utime(path, (at, at))
    return path


def look(folder: Path, shared: str | None = None) -> LeftLocks:
    return GitLocks(lambda _: shared).remove_left(str(folder), BEGAN, ENDED)


@contextmanager
def running(*argv: str, **options: Any) -> Iterator[None]:
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE} | options
    with subprocess.Popen(argv, **options) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it is what it is to be
        yield
        process.kill()


def a_git(ground: GitGround, name: str = "git") -> str:
    """A program of this name that does nothing for a minute."""
    program = ground.bin / name
    program.symlink_to("/bin/bash")
    return str(program)


#: By itself: a child would be a git of the same kind until it is what it is to be.
SCRIPT = "echo here; read -t 60 x"


def test_where_there_is_none_nothing_is_told(ground: GitGround) -> None:
    assert look(ground.repo) == LeftLocks()
    assert look(ground.home) == LeftLocks()
    assert look(ground.repo / "gone") == LeftLocks()


def test_one_that_came_while_the_job_ran_and_nobody_holds_is_removed(
    ground: GitGround,
) -> None:
    paths = [lock(ground), lock(ground, name="HEAD.lock")]
    found = look(ground.repo / "folder")
    assert sorted(found.removed) == sorted(map(str, paths))
    assert not any(path.exists() for path in paths)
    git(ground.repo, "add", "--all")


def test_one_of_a_linked_work_tree_is_found_there(ground: GitGround) -> None:
    linked = ground.home / "linked"
    git(ground.repo, "worktree", "add", "-q", str(linked))
    mine, other = (
        ground.common_dir / "worktrees" / "linked" / "index.lock",
        lock(ground),
    )
    mine.touch()
    os.utime(mine, (BEGAN, BEGAN))
    assert look(linked).removed == (str(mine),)
    assert other.exists()


@pytest.mark.parametrize("at", [BEGAN - 1, ENDED + 1])
def test_one_of_another_time_is_somebody_elses(at: float, ground: GitGround) -> None:
    path = lock(ground, at)
    assert look(ground.repo).kept == ((str(path), "it did not come while the job ran"),)
    assert path.exists()


def test_where_others_are_not_seen_it_stays(ground: GitGround) -> None:
    path = lock(ground)
    [(kept, why)] = look(ground.repo, "nfs4").kept
    assert (kept, "nfs4" in why) == (str(path), True)
    assert path.exists()


def test_a_git_in_the_checkout_keeps_it(ground: GitGround) -> None:
    path = lock(ground)
    with running(a_git(ground), "-c", SCRIPT, cwd=ground.repo / "folder"):
        [(_, why)] = look(ground.repo).kept
        assert "may hold it" in why
        assert path.exists()
    assert look(ground.repo).removed == (str(path),)


def test_a_git_that_works_elsewhere_than_where_it_is_keeps_it(
    ground: GitGround,
) -> None:
    path = lock(ground)
    program = a_git(ground)
    where = str(ground.repo / "folder")
    with running(program, "-c", SCRIPT, "x", "-C", where, cwd="/"):
        assert look(ground.repo).kept
    told = os.environ | {"GIT_DIR": str(ground.common_dir)}
    with running(program, "-c", SCRIPT, cwd="/", env=told):
        assert look(ground.repo).kept
    with running(program, "-c", SCRIPT, "x", "-C", "/tmp", cwd="/"):
        assert look(ground.repo).removed == (str(path),)


def test_whoever_has_it_open_keeps_it(ground: GitGround) -> None:
    path = lock(ground)
    script = "echo here; exec sleep 60"
    with path.open() as file, running("sh", "-c", script, stdin=file, cwd="/"):
        assert look(ground.repo).kept
    assert look(ground.repo).removed == (str(path),)


def test_a_link_is_not_followed(ground: GitGround) -> None:
    victim = ground.home / "victim"
    victim.touch()
    (ground.common_dir / "index.lock").symlink_to(victim)
    assert look(ground.repo).kept
    assert victim.exists()
