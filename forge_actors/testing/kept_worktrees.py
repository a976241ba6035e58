"""The part of the fake `Control` that is about worktrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.errors import NotFound, Refused
from forge_actors.domain.worktree_views import (
    WorktreeRemoved,
    WorktreeRestored,
    WorktreeView,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class FakeWorktrees:
    """Worktrees as the test puts them into `worktree_views`; one with `stays` stays."""

    def __init__(self) -> None:
        self.worktree_views: dict[str, WorktreeView] = {}

    async def worktrees(
        self, *, removed: bool = False, looking: bool = True
    ) -> list[WorktreeView]:
        views = list(self.worktree_views.values())
        if not looking:
            unseen = {"size": None, "uncommitted": None, "unpushed": None}
            views = [structs.replace(view, **unseen) for view in views]
        return [view for view in views if removed or view.state != "removed"]

    async def keep_worktrees(
        self, names: Sequence[str], *, keep: bool
    ) -> list[WorktreeView]:
        for name in names:
            view = self._worktree(name)
            if view.state in ("removing", "removed"):
                raise Refused(f"the worktree {view.id} is {view.state}")
        for name in names:
            view = structs.replace(self._worktree(name), kept=keep)
            self.worktree_views[view.id] = view
        return [self._worktree(name) for name in names]

    async def remove_worktrees(
        self, names: Sequence[str], *, force: bool = False, dry_run: bool = False
    ) -> list[WorktreeRemoved]:
        answers = []
        for name in names:
            view = self._worktree(name)
            gone = view.stays is None or force
            if gone and not dry_run:
                now = structs.replace(view, state="removed")
                self.worktree_views[view.id] = now
            answers.append(
                WorktreeRemoved(
                    id=view.id,
                    branch=view.branch,
                    removed=gone,
                    reason=None if gone else view.stays,
                    bytes=view.size or 0,
                    preserved=f"/home/preserved/{view.id}",
                )
            )
        return answers

    async def restore_worktree(
        self, name: str, to: str | None = None
    ) -> WorktreeRestored:
        view = self._worktree(name)
        if view.state != "removed":
            raise Refused(f"the worktree {view.id} is {view.state}, not removed")
        if to is None:
            now = structs.replace(view, state="ready", kept=True)
            self.worktree_views[view.id] = now
        return WorktreeRestored(view.id, to or view.path, view.branch, 0, 0)

    def _worktree(self, name: str) -> WorktreeView:
        for view in self.worktree_views.values():
            if name in (view.id, view.branch):
                return view
        raise NotFound(f"no worktree is of the job {name!r}, or has this branch")
