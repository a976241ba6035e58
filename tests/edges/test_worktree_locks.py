"""Making worktrees while others hold locks, and those that nobody holds any more."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from forge_actors.domain.errors import WorktreeFailed
from forge_actors.edges.git import leftovers
from forge_actors.testing.worktree_contract import planned
from tests.edges.worktree_ground import GitGround, make

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def ground(tmp_path: Path) -> GitGround:
    return GitGround(tmp_path)


@contextmanager
def sleeping(**options: Any) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"], **options) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("lock", ["index.lock", "config.lock", "HEAD.lock"])
async def test_locks_of_the_users_checkout_are_in_nobodys_way(
    lock: str, ground: GitGround
) -> None:
    """An editor holds its index, or a git of somebody the configuration."""
    held = ground.common_dir / lock
    held.touch()
    async with trio.open_nursery() as nursery:
        for number in range(12):
            nursery.start_soon(make, ground, f"job{number}")
    assert held.exists()
    assert len(ground.branches()) == 12


async def test_a_foreign_lock_is_waited_for(
    ground: GitGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = ground.common_dir / "refs" / "heads" / "mine.lock"
    lock.touch()
    seen: list[float] = []
    sleep = trio.sleep

    async def release(seconds: float) -> None:
        seen.append(seconds)
        if len(seen) == 3:
            lock.unlink()
        await sleep(0)

    monkeypatch.setattr(leftovers.trio, "sleep", release)
    await make(ground, pattern="mine")
    assert len(seen) == 3


async def test_a_foreign_lock_that_stays_is_named_and_never_removed(
    ground: GitGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "LOCK_SECONDS", 0.1)
    lock = ground.common_dir / "refs" / "heads" / "mine.lock"
    lock.touch()
    with pytest.raises(WorktreeFailed, match="another git program holds") as failed:
        await make(ground, pattern="mine")
    assert str(lock) in str(failed.value)
    assert lock.exists()


async def test_a_lock_that_a_dead_git_left_for_this_job_is_removed_and_told(
    ground: GitGround,
) -> None:
    wanted = ground.wanted("job")
    known = await planned(ground.worktrees(), wanted)
    ref = ground.common_dir / "refs" / "heads" / "forge" / "job.lock"
    ref.parent.mkdir()
    ref.touch()
    made = await ground.worktrees().make(wanted, known)
    assert made.unlocked == (str(ref),)
    index = Path(made.place.git_dir) / "index.lock"
    index.touch()
    entered = await ground.worktrees().enter(wanted, known)
    assert entered.unlocked == (str(index),)
    assert not index.exists()


async def test_a_lock_is_left_to_a_git_that_lives(ground: GitGround) -> None:
    wanted = ground.wanted("job")
    known = await planned(ground.worktrees(), wanted)
    made = await ground.worktrees().make(wanted, known)
    lock = Path(made.place.git_dir) / "index.lock"
    lock.touch()
    with sleeping(cwd=wanted.folder):
        entered = await ground.worktrees().enter(wanted, known)
        assert entered.unlocked == ()
        assert lock.exists()


async def test_a_git_that_an_earlier_runtime_started_is_waited_for(
    ground: GitGround,
) -> None:
    wanted = ground.wanted("job")
    known = await planned(ground.worktrees(), wanted)
    environment = os.environ | {"FORGE_WORKTREE": wanted.folder}
    with sleeping(env=environment) as left:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ground.worktrees().make, wanted, known)
            with trio.move_on_after(0.3):
                await trio.sleep_forever()
            assert ground.branches() == {}, "it has begun beside the other one"
            left.send_signal(signal.SIGKILL)
    assert ground.files(wanted) is not None
