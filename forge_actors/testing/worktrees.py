"""Worktrees in memory: the port `Worktrees` without git and without a file.

    worktrees = FakeWorktrees()
    worktrees.held = trio.Event()  # every `make` waits for it
    worktrees.failure = "the disk is full"  # every `make` fails with it

It keeps the contract of `worktree_contract.py`, which the real one keeps too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from msgspec import Struct

from forge_actors.domain.branches import branch_for
from forge_actors.domain.errors import WorktreeFailed
from forge_actors.domain.worktrees import MadeWorktree, WorktreePlace, WorktreePlan

if TYPE_CHECKING:
    from forge_actors.domain.worktrees import Worktree, WorktreeWanted

#: The commit at which every worktree begins where none is named.
HEAD = "c" * 40


class Branch(Struct):
    """A branch: where it is, and for which job it was made."""

    commit: str
    job: str | None = None


class Folder(Struct):
    job: str
    branch: str
    #: All of its files are there.
    complete: bool = False


class Checkouts:
    """What is on the disk: it outlives whoever makes worktrees there."""

    def __init__(self) -> None:
        self.commits = {"HEAD": HEAD}
        self.branches: dict[str, Branch] = {}
        self.folders: dict[str, Folder] = {}


class FakeWorktrees:
    """The port `Worktrees` over some checkouts."""

    def __init__(self, checkouts: Checkouts | None = None) -> None:
        self.checkouts = checkouts or Checkouts()
        self.held: trio.Event | None = None
        self.failure: str | None = None
        #: How many were being made at once, at most.
        self.most_at_once = 0
        self._at_once = 0

    async def plan(self, wanted: WorktreeWanted) -> WorktreePlan:
        await trio.lowlevel.checkpoint()
        branch = branch_for(wanted.pattern or wanted.default_pattern, wanted.names)
        commit = self.checkouts.commits.get(wanted.base or "HEAD")
        if commit is None:
            raise WorktreeFailed(f"its base {wanted.base} is no commit")
        if branch in self.checkouts.branches:
            raise WorktreeFailed(f"there is a branch {branch} already")
        return WorktreePlan(branch, commit)

    async def make(self, wanted: WorktreeWanted, known: Worktree) -> MadeWorktree:
        await trio.lowlevel.checkpoint()
        here = self.checkouts
        assert known.base_commit is not None, "its plan said so"
        branch = here.branches.get(known.branch)
        if branch is None:
            here.branches[known.branch] = Branch(known.base_commit, wanted.job)
        elif branch != Branch(known.base_commit, wanted.job):
            raise WorktreeFailed(f"there is a branch {known.branch} already")
        folder = Folder(wanted.job, known.branch)
        here.folders.setdefault(wanted.folder, folder)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            if self.held is not None:
                await self.held.wait()
        finally:
            self._at_once -= 1
        if self.failure is not None:
            raise WorktreeFailed(self.failure)
        here.folders[wanted.folder].complete = True
        return self._made(wanted)

    async def enter(self, wanted: WorktreeWanted, known: Worktree) -> MadeWorktree:
        await trio.lowlevel.checkpoint()
        folder = self.checkouts.folders.get(wanted.folder)
        if folder is None or not folder.complete:
            raise WorktreeFailed(f"{wanted.folder} is not there")
        if folder.branch != known.branch:
            raise WorktreeFailed(f"its worktree is at {folder.branch}")
        return self._made(wanted)

    async def undo(self, wanted: WorktreeWanted, known: Worktree) -> None:
        await trio.lowlevel.checkpoint()
        here = self.checkouts
        branch = here.branches.get(known.branch)
        if branch == Branch(known.base_commit or "", wanted.job):
            here.folders.pop(wanted.folder, None)
            del here.branches[known.branch]

    def _made(self, wanted: WorktreeWanted) -> MadeWorktree:
        place = WorktreePlace(
            root=wanted.folder,
            git_dir=f"{wanted.common_dir}/worktrees/{wanted.job}",
            common_dir=wanted.common_dir,
            device=1,
            inode=1,
        )
        return MadeWorktree(place, wanted.folder)
