"""What can be asked of the worktrees of jobs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.domain.changes import WorktreeChanged
from forge_actors.domain.cleaning import CleanRequest
from forge_actors.domain.errors import NotFound, Refused
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import TERMINAL
from forge_actors.domain.removal import Use
from forge_actors.domain.timestamps import timestamp
from forge_actors.domain.worktree_views import WorktreeRemoved, WorktreeView
from forge_actors.edges.cleanup.folders import opened_home
from forge_actors.edges.cleanup.worktrees.cleaner import Found, found_from, limits_of
from forge_actors.edges.cleanup.worktrees.occupants import occupants
from forge_actors.edges.cleanup.worktrees.restoring import restore
from forge_actors.edges.cleanup.worktrees.survey import Survey, survey
from forge_actors.runtime.control_cleaning import CleaningControl
from forge_actors.runtime.homes import PRESERVED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.removal import Limits
    from forge_actors.domain.worktree_views import WorktreeRestored
    from forge_actors.domain.worktrees import Worktree

#: Worktrees that are looked into at once, so that a list does not take the machine.
LOOKS = 2


class WorktreeControl(CleaningControl):
    """The part of the port `Control` that is about worktrees."""

    async def worktrees(
        self, *, removed: bool = False, looking: bool = True
    ) -> list[WorktreeView]:
        if removed:
            rows = self._store.read("worktrees_named", "")
        else:
            rows = self._store.read("worktrees_to_clean")
        found = [found_from(row) for row in rows]
        if not looking:
            return [_view(self._home_path, each) for each in found]
        looks: dict[str, Survey] = {}
        limiter = trio.CapacityLimiter(LOOKS)
        limits = limits_of(self._settings().clean_rules())

        async def look(each: Found) -> None:
            async with limiter:
                looks[each.worktree.id] = await trio.to_thread.run_sync(
                    _survey, self._home_path, each, limits
                )

        async with trio.open_nursery() as nursery:
            for each in found:
                if each.worktree.state != "removed":
                    nursery.start_soon(look, each)
        return [
            _view(self._home_path, each, looks.get(each.worktree.id)) for each in found
        ]

    async def keep_worktrees(
        self, names: Sequence[str], *, keep: bool
    ) -> list[WorktreeView]:
        found = [self._worktree_named(name) for name in names]
        for each in found:
            if each.worktree.state in ("removing", "removed"):
                worktree = each.worktree
                raise Refused(f"the worktree {worktree.id} is {worktree.state}")
        kind = "worktree_kept" if keep else "worktree_unkept"
        kept = [structs.replace(each.worktree, kept=keep) for each in found]
        await self._save(kind, kept, "a person said so")
        return [_view(self._home_path, self._worktree_named(each.id)) for each in kept]

    async def remove_worktrees(
        self, names: Sequence[str], *, force: bool = False, dry_run: bool = False
    ) -> list[WorktreeRemoved]:
        named = [self._worktree_named(name) for name in names]
        # Who asks again for what was begun has some left and others not.
        left = [each for each in named if each.worktree.state != "removed"]
        if named and not left:
            raise Refused(f"the worktree {named[0].worktree.id} is removed already")
        found = {each.worktree.id: each for each in left}
        result = await self.clean(
            CleanRequest(
                "",
                0.0,
                dry_run=dry_run,
                classes=("worktrees",),
                worktrees=tuple(found),
                force=force,
            )
        )
        sizes = {each.what: each.bytes for each in result.removals}
        reasons = {each.what: each.reason for each in result.skips}
        default = result.failure or "the clean-up ended before it came to it"
        answers = []
        for worktree, each in found.items():
            # What was said of it is not enough: the record and the disk have to say it.
            now = self._worktree_named(worktree).worktree
            gone = now.state == "removed" and not os.path.lexists(self._path(now))
            gone = worktree in sizes if dry_run else gone
            reason = (
                now.reason if gone else reasons.get(worktree, now.reason or default)
            )
            answers.append(
                WorktreeRemoved(
                    id=worktree,
                    branch=each.worktree.branch,
                    removed=gone,
                    reason=None if gone and dry_run else reason,
                    bytes=sizes.get(worktree, 0),
                    preserved=os.path.join(self._home_path, PRESERVED, worktree),
                )
            )
        return answers

    async def restore_worktree(
        self, name: str, to: str | None = None
    ) -> WorktreeRestored:
        found = self._worktree_named(name)
        worktree = found.worktree
        if worktree.state != "removed":
            raise Refused(
                f"the worktree {worktree.id} is {worktree.state}, not removed"
            )
        place = self._path(worktree) if to is None else to
        done = await trio.to_thread.run_sync(
            restore, self._home_path, found.subject, place
        )
        if to is None:
            # Nobody wants it restored to see it removed again the next minute.
            now = structs.replace(
                worktree, state="ready", kept=True, reason=None, removed_at=None
            )
            await self._save("worktree_restored", [now], "a person said so")
        return done

    @property
    def _home_path(self) -> str:
        return os.path.realpath(self._home)

    def _path(self, worktree: Worktree) -> str:
        return os.path.join(self._home_path, worktree.path)

    def _worktree_named(self, name: str) -> Found:
        """The worktree of a job, or that with a branch.

        Raises:
            NotFound: none. Refused: several.
        """
        rows = self._store.read("worktrees_named", name) if name else []
        found = [found_from(row) for row in rows]
        exact = [each for each in found if each.worktree.id == name]
        there = [each for each in found if each.worktree.state != "removed"]
        for some in (exact, there, found):
            if len(some) == 1:
                return some[0]
            if some:
                ids = ", ".join(each.worktree.id for each in some[:3])
                raise Refused(f"{name!r} could be any of the worktrees {ids}, ...")
        raise NotFound(f"no worktree is of the job {name!r}, or has this branch")

    async def _save(self, kind: str, worktrees: Sequence[Worktree], why: str) -> None:
        now = self._clock.now()
        changes = []
        for each in worktrees:
            data: dict[str, object] = {"branch": each.branch, "reason": why}
            event = Event(kind, now, each.repo, each.id, data)
            changes.append(WorktreeChanged(each, event))
        await self._store.save(changes).wait()


class _RowFacts:
    """What a look has to be told, from the row of its worktree."""

    def __init__(self, found: Found) -> None:
        active = found.job_state is not None and found.job_state not in TERMINAL
        self._job = found.job_state if active else None

    def use(self, worktree: Worktree, folders: tuple[str, ...]) -> Use:
        """See `UseFacts`."""
        return Use(self._job, occupants(folders, worktree.id))


def _survey(home: str, found: Found, limits: Limits) -> Survey:
    with opened_home(home) as folder:
        return survey(folder, found.subject, limits, _RowFacts(found))


def _view(home: str, found: Found, look: Survey | None = None) -> WorktreeView:
    worktree = found.worktree
    removed_at = worktree.removed_at
    seen = look is not None and look.there
    stays = look.stays if look is not None else None
    if worktree.state == "removed":
        stays = None
    elif worktree.kept:
        stays = "a person keeps it"
    elif look is not None and not look.there:
        stays = None
    return WorktreeView(
        id=worktree.id,
        job_state=found.job_state,
        repo=found.repository,
        branch=worktree.branch,
        path=os.path.join(home, worktree.path),
        state=worktree.state,
        base=worktree.base,
        base_commit=worktree.base_commit,
        kept=worktree.kept,
        reason=worktree.reason,
        made_at=timestamp(worktree.made_at),
        removed_at=None if removed_at is None else timestamp(removed_at),
        size=look.size if look is not None and seen else None,
        uncommitted=look.uncommitted if look is not None and seen else None,
        unpushed=look.unpushed if look is not None and seen else None,
        stays=stays,
    )
