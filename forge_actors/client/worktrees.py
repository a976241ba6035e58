"""The part of the client that is about the worktrees of jobs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from forge_actors.client.inbox import InboxCalls
from forge_actors.domain.requests import convert
from forge_actors.domain.worktree_views import (
    WorktreeRemoved,
    WorktreeRestored,
    WorktreeView,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class WorktreeCalls(InboxCalls):
    """A worktree is named by its job, by 4 characters of that, or by its branch."""

    async def worktrees(
        self, *, removed: bool = False, looking: bool = True
    ) -> list[WorktreeView]:
        """Those that are there, and `removed` ones; only `looking` with their sizes."""
        query = [("removed", int(removed)), ("quick", int(not looking))]
        answer = await self._call("GET", "worktrees", query=query)
        return convert(answer["worktrees"], list[WorktreeView])

    async def keep_worktrees(
        self, names: Sequence[str], *, keep: bool = True
    ) -> list[WorktreeView]:
        """Keep them from being removed, or let that be again."""
        action = "keep" if keep else "unkeep"
        body = {"worktrees": list(names)}
        answer = await self._call("POST", "worktrees", action, body=body)
        return convert(answer["worktrees"], list[WorktreeView])

    async def remove_worktrees(
        self, names: Sequence[str], *, force: bool = False, dry_run: bool = False
    ) -> list[WorktreeRemoved]:
        """Save what is in them and remove them; each says whether it is gone."""
        body = {"worktrees": list(names), "force": force, "dry_run": dry_run}
        answer = await self._call("POST", "worktrees", "remove", body=body)
        return convert(answer["worktrees"], list[WorktreeRemoved])

    async def restore_worktree(
        self, name: str, to: str | os.PathLike[str] | None = None
    ) -> WorktreeRestored:
        """Make one again that was removed, where it was or at a path."""
        place = None if to is None else os.path.abspath(os.path.expanduser(to))
        body = {"to": place}
        answer = await self._call("POST", "worktrees", name, "restore", body=body)
        return convert(answer, WorktreeRestored)
