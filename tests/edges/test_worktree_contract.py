"""The real maker of worktrees and the one in memory keep the same contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from forge_actors.domain.branches import BranchNames
from forge_actors.domain.worktrees import Worktree, WorktreeWanted
from forge_actors.testing.worktree_contract import CHECKS
from forge_actors.testing.worktrees import (
    HEAD,
    Branch,
    Checkouts,
    FakeWorktrees,
)
from tests.edges.worktree_ground import GitGround

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.testing.worktree_contract import Check

#: Calls of git that a worktree takes.
STEPS = 7
checks = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)


class FakeGround:
    """The contract's ground in memory."""

    def __init__(self) -> None:
        self._checkouts = Checkouts()

    def worktrees(self) -> FakeWorktrees:
        return FakeWorktrees(self._checkouts)

    def wanted(self, job: str, **changes: Any) -> WorktreeWanted:
        values: dict[str, Any] = {
            "job": job,
            "repo": "repo",
            "common_dir": "/app/.git",
            "folder": f"/home/worktrees/repo/{job}",
            "path": f"worktrees/repo/{job}",
            "ceiling": "/home/worktrees",
            "cwd": "/app",
            "base": None,
            "pattern": None,
            "default_pattern": "forge/{job}",
            "names": BranchNames(job, "app", "name", "2026-01-31"),
            "seconds": 60.0,
        }
        return WorktreeWanted(**(values | changes))

    def head(self) -> str:
        return HEAD

    def branches(self) -> dict[str, str]:
        known = self._checkouts.branches
        return {name: branch.commit for name, branch in known.items()}

    def files(self, wanted: WorktreeWanted) -> set[str] | None:
        folder = self._checkouts.folders.get(wanted.folder)
        if folder is None:
            return None
        return {"file", "folder/inner"} if folder.complete else set()

    def make_branch(self, name: str) -> None:
        self._checkouts.branches[name] = Branch(HEAD)

    def switch(self, wanted: WorktreeWanted, name: str) -> None:
        self.make_branch(name)
        self._checkouts.folders[wanted.folder].branch = name

    def remove(self, wanted: WorktreeWanted) -> None:
        del self._checkouts.folders[wanted.folder]

    async def cut_off(self, wanted: WorktreeWanted, known: Worktree) -> None:
        dying = self.worktrees()
        dying.held = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(dying.make, wanted, known)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()


@checks
async def test_git_keeps_the_contract(check: Check, tmp_path: Path) -> None:
    await check(GitGround(tmp_path))


@checks
async def test_the_one_in_memory_keeps_the_contract(check: Check) -> None:
    await check(FakeGround())


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("nth", range(1, STEPS + 2))
async def test_a_runtime_that_dies_at_any_step_leaves_what_can_be_gone_on_with(
    nth: int, when: str, tmp_path: Path
) -> None:
    ground = GitGround(tmp_path)
    wanted = ground.wanted("job")
    plan = await ground.worktrees().plan(wanted)
    known = Worktree(
        "job", "repo", wanted.path, plan.branch, 1.0, base_commit=plan.base_commit
    )
    code = await ground.make_deadly(wanted, known, nth, when)
    assert code in (-9, 0), "its own words are above"
    await ground.worktrees().make(wanted, known)
    assert ground.files(wanted) == {"file", "folder/inner"}
    assert ground.branches() == {"forge/job": ground.head()}
    await ground.worktrees().undo(wanted, known)
    assert ground.branches() == {}
    assert list((ground.home / "worktrees" / "repo").iterdir()) == []
    assert (code == 0) is (nth > STEPS), "every step was tried"
