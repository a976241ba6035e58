"""Which worktree a dispatched job needs: where, of what, and its branch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from forge_actors.domain.branches import BranchNames, fit
from forge_actors.domain.worktrees import WorktreeWanted
from forge_actors.runtime.homes import WORKTREES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from forge_actors.domain.launch import LaunchOrder
    from forge_actors.domain.ports import Clock
    from forge_actors.domain.repositories import Repository
    from forge_actors.domain.worktrees import Isolation
    from forge_actors.runtime.settings import Settings


class WorktreeOrders:
    """Knows the repositories and the settings in force."""

    def __init__(
        self,
        home: Path,
        clock: Clock,
        settings: Callable[[], Settings],
        repository: Callable[[str], Repository | None],
        name_of: Callable[[str], str | None],
    ) -> None:
        self._home = str(home.absolute())
        self._clock = clock
        self._settings = settings
        self._repository = repository
        #: The name that somebody gave a job.
        self._name_of = name_of

    def __call__(
        self, order: LaunchOrder, isolation: Isolation
    ) -> WorktreeWanted | None:
        """What the order needs; None if its repository is not there any more."""
        repository = self._repository(order.repo)
        if repository is None:
            return None
        settings = self._settings()
        owner = isolation.of or order.job
        path = f"{WORKTREES}/{order.repo}/{owner}"
        date = datetime.fromtimestamp(self._clock.wall(), UTC).strftime("%Y-%m-%d")
        name = fit(self._name_of(order.job))
        return WorktreeWanted(
            job=owner,
            repo=order.repo,
            common_dir=repository.common_dir,
            folder=f"{self._home}/{path}",
            path=path,
            ceiling=f"{self._home}/{WORKTREES}",
            cwd=order.cwd,
            base=isolation.base,
            pattern=isolation.branch,
            default_pattern=settings.worktrees.branch,
            names=BranchNames(owner, repository.name, name, date),
            seconds=settings.worktree_seconds,
        )
