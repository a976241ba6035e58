"""The bookkeeper: does for a run of the clean-up what only the owner of the store may.

Rows go in small pieces, with pauses in between that are many times as long as the work:
removing a hundred thousand jobs takes minutes, and nobody else notices. What may go is
looked at again here, right before it does.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

import trio

from forge_actors.domain.changes import (
    ClassVisited,
    EventsForgotten,
    JobsForgotten,
    WorktreeChanged,
)
from forge_actors.domain.errors import StoreFailed, WriterFenced
from forge_actors.domain.events import Event
from forge_actors.domain.maintenance import ClassVisit
from forge_actors.domain.retention import JOB_GRACE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.domain.changes import Change
    from forge_actors.domain.cleaning import ClassReport, CleanClass
    from forge_actors.domain.ports import Clock, KeptStore
    from forge_actors.domain.worktrees import Worktree

#: Jobs, and rows of the history, that go at once.
PIECE = 50
#: Seconds between two pieces: at least so many, and so many times what one took.
PAUSE_SECONDS = 0.02
PAUSE_SHARE = 20.0

_WORKTREE_EVENTS = {"removing": "worktree_removing", "removed": "worktree_removed"}


class Bookkeeper:
    """The `Books` of one run. Use it as a context manager, within which it runs."""

    def __init__(
        self,
        store: KeptStore,
        clock: Clock,
        visits: dict[CleanClass, ClassVisit],
        *,
        dry_run: bool,
        is_busy: Callable[[], bool],
    ) -> None:
        self._store = store
        self._clock = clock
        #: What is known of the visits; kept up to date.
        self._visits = visits
        self._dry_run = dry_run
        #: Whether any job waits or runs.
        self._is_busy = is_busy
        self._watch = AsyncExitStack()
        self._watches = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._watch.aclose()

    async def visiting(self, clean_class: CleanClass) -> str | None:
        """See `Books`."""
        before = self._visits.get(clean_class)
        cursor = None if before is None else before.cursor
        # Without its cursor: one that fails at a place does not begin there for ever.
        size = None if before is None else before.size
        await self._keep(ClassVisit(clean_class, self._clock.wall(), size=size))
        return cursor

    async def visited(self, report: ClassReport) -> None:
        """See `Books`."""
        if self._dry_run:
            return
        before = self._visits.get(report.clean_class)
        began_at = self._clock.wall() if before is None else before.visited_at
        name, cursor = report.clean_class, report.cursor
        size = report.size
        if size is None and before is not None:
            size = before.size
        await self._keep(ClassVisit(name, began_at, cursor, report, size))

    async def _keep(self, visit: ClassVisit) -> None:
        self._visits[visit.clean_class] = visit
        try:
            await self._store.save([ClassVisited(visit)]).wait()
        except WriterFenced:
            raise
        except StoreFailed:
            # On a disk that is full a clean-up is wanted most.
            pass

    async def forget_jobs(self, jobs: Sequence[str]) -> list[str]:
        """See `Books`."""
        if not self._watches:
            await self._watch.enter_async_context(self._store.forgetting())
            self._watches = True
        gone: list[str] = []
        for start in range(0, len(jobs), PIECE):
            began = trio.current_time()
            now = self._clock.wall()
            piece = jobs[start : start + PIECE]
            free = self._store.forgettable(piece, now - JOB_GRACE)
            if free:
                await self._save(JobsForgotten(free, now), began)
                gone += [each.job for each in free]
        return gone

    async def forget_events(self, before: int) -> int:
        """See `Books`."""
        oldest = await self._store.oldest_active()
        first, last = self._store.history_range()
        after = first - 1
        until = first
        while after < last:
            began = trio.current_time()
            rows = self._store.old_history(after, min(before, last), PIECE)
            free = []
            for row in rows:
                # No event of a job is older than the job.
                if row[1] > before or (oldest is not None and row[2] >= oldest):
                    break
                free.append(row)
            if free:
                after, until = free[-1][0], free[-1][1]
                await self._save(EventsForgotten(until), began)
            if len(free) < PIECE:
                break
        return until - first

    async def _save(self, change: Change, began: float) -> None:
        """Save one piece, whose work began then; then let others have their turn."""
        saved = self._store.save([change])
        spent = trio.current_time() - began
        await saved.wait()
        await trio.sleep(max(PAUSE_SECONDS, PAUSE_SHARE * spent))

    async def record(self, worktree: Worktree, step: str) -> None:
        """See `Books`."""
        kind = _WORKTREE_EVENTS.get(worktree.state, "worktree_kept")
        data: dict[str, object] = {"branch": worktree.branch, "reason": step}
        event = Event(kind, self._clock.now(), worktree.repo, worktree.id, data)
        await self._store.save([WorktreeChanged(worktree, event)]).wait()

    async def upkeep(self) -> int:
        """See `Books`."""
        return await self._store.upkeep(may_vacuum=not self._is_busy())
