"""Where the work on an issue is done: its worktree and its branch.

Both are made once. A branch of the name that is there already is somebody's, and so is
whatever an earlier try left that git does not find untouched: nothing of it is removed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from forge_actors.domain.branches import BranchNames
from forge_actors.domain.epic.phases import Outcome
from forge_actors.domain.errors import Refused, WorktreeFailed
from forge_actors.domain.worktrees import Worktree, WorktreeWanted
from forge_actors.edges.git import issue_branches
from forge_actors.edges.git.worktrees import GitWorktrees

if TYPE_CHECKING:
    from forge_actors.domain.epic.records import EngineState
    from forge_actors.domain.worktrees import WorktreePlan


class Ground:
    """The worktree of one issue, at `folder`."""

    def __init__(
        self, checkout: str, common_dir: str, folder: str, seconds: float
    ) -> None:
        self._checkout = checkout
        self._common_dir = common_dir
        self.folder = folder
        self._seconds = seconds
        self._git = GitWorktrees()

    async def plan(self, branch: str, base: str | None) -> WorktreePlan:
        """What it is to begin at.

        Raises:
            Refused: there is a branch of that name.
            WorktreeFailed: there is no such commit.
        """
        if await issue_branches.branch_commit(self._common_dir, branch) is not None:
            raise Refused(
                f"there is a branch {branch}, which was not made for this work: rename"
                " it, remove it if nobody needs it, or set epic.branch"
            )
        return await self._git.plan(self._wanted(branch, base, "new"))

    async def make(self, state: EngineState) -> str:
        """Make it, or go on with that; the folder in it that the work is done in.

        Raises:
            WorktreeFailed: it cannot be made.
        """
        made = await self._git.make(*self._of(state))
        return made.cwd

    async def enter(self, state: EngineState) -> str:
        """The folder in it that the work is done in.

        Raises:
            WorktreeFailed: it is not at its branch any more, or not there.
        """
        made = await self._git.enter(*self._of(state))
        return made.cwd

    async def committed(self, state: EngineState, outcome: Outcome) -> Outcome:
        """The outcome, once all of the work is committed on its branch."""
        issue = state.run_key.issue_number
        try:
            await self.enter(state)
            await issue_branches.commit_rest(self.folder, f"Work on issue #{issue}")
        except WorktreeFailed as error:
            return Outcome("failed", str(error), outcome.job)
        return outcome

    def _of(self, state: EngineState) -> tuple[WorktreeWanted, Worktree]:
        wanted = self._wanted(state.branch, state.base_commit, state.run_id)
        known = Worktree(
            state.run_id,
            "",
            self.folder,
            state.branch,
            0.0,
            base_commit=state.base_commit,
        )
        return wanted, known

    def _wanted(self, branch: str, base: str | None, run_id: str) -> WorktreeWanted:
        return WorktreeWanted(
            job=run_id,
            repo="",
            common_dir=self._common_dir,
            folder=self.folder,
            path=self.folder,
            ceiling=os.path.dirname(self.folder),
            cwd=self._checkout,
            base=base,
            pattern=branch,
            default_pattern=branch,
            names=BranchNames(run_id, "", "", ""),
            seconds=self._seconds,
        )
