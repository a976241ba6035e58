"""The watches: in which checkouts files are watched for changes, and since when.

Only those of the repositories that were used last, and none that has had no job for a
while: each costs the system a watch for each of its folders.
"""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from typing import TYPE_CHECKING

import trio

from forge_actors.actors.projections_messages import FilesChanged, Message, Watched

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.actors.projections_messages import Context
    from forge_actors.domain.looking import Unwatchable
    from forge_actors.domain.repositories import Repository

log = logging.getLogger(__name__)

#: Repositories whose files are watched at most.
WATCHED = 64
#: Seconds after its last job from which on a repository sleeps.
AWAKE_SECONDS = 300.0
#: Seconds from its first job to the watch: what runs for a moment only is not worth it.
BEGIN_SECONDS = 1.0
#: Seconds between two notices of changed files, however many there are.
FILES_SECONDS = 1.0
#: Seconds until watching is tried again, after the system allowed no more of it.
AGAIN_SECONDS = 600.0


class Watches:
    """Those of one projections actor, which alone calls it."""

    def __init__(
        self,
        context: Context,
        tell: Callable[[Message], None],
        nursery: trio.Nursery,
    ) -> None:
        self._context = context
        self._tell = tell
        self._nursery = nursery
        #: The repositories that are awake, by when they were used, the last at the end.
        self._used: OrderedDict[str, float] = OrderedDict()
        #: Those that are watched whether they are used or not.
        self._kept: frozenset[str] = frozenset()
        #: Those that are watched, or about to be.
        self._watched: set[str] = set()
        #: Nothing is tried before, as the system allows no more; and why.
        self._not_before = -math.inf
        self._problem: str | None = None

    @property
    def next_at(self) -> float:
        """When the next one may fall asleep."""
        return next(iter(self._used.values()), math.inf) + AWAKE_SECONDS

    async def listen(self) -> None:
        """Tell of the files that change."""
        while True:
            repos = await self._context.watch.changed()
            self._tell(FilesChanged(frozenset(repos)))
            await trio.sleep(FILES_SECONDS)

    def use(self, repo: str, now: float) -> None:
        """It has jobs: its files are watched for a while."""
        self._used[repo] = now
        self._used.move_to_end(repo)
        self._begin(repo, now)
        while len(self._used) > WATCHED:
            self.drop(next(iter(self._used)))

    def keep(self, repos: frozenset[str], now: float) -> None:
        """Watch these however long they have no job, and no others for that."""
        before, self._kept = self._kept, repos
        for repo in before - repos:
            if repo not in self._used:
                self.drop(repo)
        for repo in repos - before:
            self._begin(repo, now)

    def drop(self, repo: str) -> None:
        """Watch it no more, unless it is to be kept."""
        self._used.pop(repo, None)
        if repo in self._kept:
            return
        if repo in self._watched:
            self._watched.remove(repo)
            self._context.watch.forget(repo)

    def let_sleep(self, now: float) -> None:
        """Watch no more what has had no job for a while."""
        while self.next_at <= now:
            repo = next(iter(self._used))
            if self._context.active(repo):
                self.use(repo, now)
            else:
                self.drop(repo)

    def answered(self, repo: str, problem: Unwatchable | None) -> None:
        """Whether a watch stands."""
        self._context.watched(repo, None if problem is None else problem.reason)
        if problem is None:
            return
        self._watched.discard(repo)
        if not problem.everywhere:
            known = self._context.repository(repo)
            name = repo if known is None else known.name
            log.info("files of %s are not watched: %s", name, problem.reason)
            return
        self._not_before = self._context.clock.now() + AGAIN_SECONDS
        self._say(problem.reason)

    def limits_changed(self) -> None:
        """Watch what is to be watched now."""
        self._not_before = -math.inf
        self._say(None)
        used = dict.fromkeys(self._kept, self._context.clock.now()) | self._used
        for repo, since in used.items():
            if self._wanted:
                self._begin(repo, since)
            elif repo in self._watched:
                self._watched.remove(repo)
                self._context.watch.forget(repo)

    @property
    def _wanted(self) -> bool:
        limits = self._context.limits()
        return limits.enabled and limits.watch

    def _begin(self, repo: str, now: float) -> None:
        if repo in self._watched or not self._wanted or now < self._not_before:
            return
        repository = self._context.repository(repo)
        if repository is not None:
            self._watched.add(repo)
            self._nursery.start_soon(self._watch, repository)

    async def _watch(self, repository: Repository) -> None:
        await trio.sleep(BEGIN_SECONDS)
        if repository.id in self._watched:
            problem = await self._context.watch.watch(repository)
            if problem is None and repository.id not in self._watched:
                self._context.watch.forget(repository.id)  # it fell asleep meanwhile
            else:
                self._tell(Watched(repository.id, problem))

    def _say(self, problem: str | None) -> None:
        """One notice, until it is another problem or none."""
        if problem == self._problem:
            return
        self._problem = problem
        self._context.unwatched(problem)
        if problem is not None:
            log.warning("changed files are found by the safety round only: %s", problem)
