"""The looks at the repositories of one runtime: the actor that makes them, kept alive.

Nothing depends on it. It is started again when it fails; when it fails over and over it
is left alone, the rest goes on, and `status` says so.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from forge_actors.actors import projections
from forge_actors.actors.keeper import Keeper
from forge_actors.actors.projections_messages import Board, LimitsChanged, Message
from forge_actors.domain.errors import StoreFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.actors.mailbox import Mailbox
    from forge_actors.domain.ports import Clock, StatusSampler
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.edges import ClosableWatch
    from forge_actors.runtime.in_force import SettingsInForce
    from forge_actors.runtime.registry import Registry

log = logging.getLogger(__name__)


class Looking:
    """The projections of one runtime. `run` is their task."""

    def __init__(
        self,
        store: SqliteStore,
        registry: Registry,
        clock: Clock,
        settings: SettingsInForce,
        sampler: StatusSampler,
        watch: ClosableWatch,
    ) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        self._settings = settings
        #: Where the rest of the runtime leaves its news.
        self.board = Board()
        #: Why files are not watched.
        self.unwatched: str | None = None
        #: All of them are told of each repository that was looked at.
        self.looked: list[Callable[[str], object]] = []
        #: By repository: why its files are not watched.
        self._unwatchable: dict[str, str] = {}
        self._limits = settings().look_limits()
        self._sampler = sampler
        self._watch = watch
        self._keeper = Keeper(
            "the looks at repositories",
            self._look,
            restart="permanent",
            ends_at=(StoreFailed,),  # another runtime has the home, and this one ends
        )
        #: Set once nothing is looked at any more.
        self.ended = trio.Event()
        store.ends.anywhere = self.board.ended

    async def run(self) -> None:
        """Look at repositories; return after `stop`, or when that is of no more use."""
        await self._keeper.run()
        self.ended.set()

    def stop(self) -> None:
        """Save nothing more. What was not done is taken up by the next runtime."""
        self._keeper.kill()

    async def _look(self, *, task_status: trio.TaskStatus[Mailbox[Message]]) -> None:
        self.unwatched = None
        context = projections.Context(
            store=self._store,
            sampler=self._sampler,
            watch=self._watch,
            clock=self._clock,
            board=self.board,
            limits=lambda: self._limits,
            repository=self._registry.get,
            fence=self._fence,
            active=self._active,
            running=self._running,
            saving=lambda: self._store.trouble is None,
            unwatched=self._say_unwatched,
            looked=self._say_looked,
            watched=self._say_watched,
        )
        try:
            await projections.run(context, task_status=task_status)
        finally:
            self._watch.close()

    def limits_changed(self) -> None:
        """Other settings hold from now on."""
        self._limits = self._settings().look_limits()
        self._keeper.tell(LimitsChanged())

    @property
    def enabled(self) -> bool:
        return self._limits.enabled

    @property
    def depth(self) -> int:
        """How many messages the actor has not read yet."""
        mailbox = self._keeper.mailbox
        return 0 if mailbox is None else mailbox.depth

    @property
    def failures(self) -> int:
        """How often they have failed."""
        return self._keeper.failures

    @property
    def given_up(self) -> str | None:
        """Why nothing is looked at any more."""
        return self._keeper.given_up

    @property
    def trouble(self) -> list[str]:
        """What `status` says of it, if anything is wrong."""
        said = []
        if self.given_up is not None:
            said.append(f"the status of repositories is not kept: {self.given_up}")
        elif self.unwatched is not None:
            said.append(f"files are not watched: {self.unwatched}")
        return said

    def _fence(self, repo: str) -> int:
        [(fence, _)] = self._store.read("repository_turn", repo)
        return int(fence)

    # The tally is another one once the store was taken over.

    def _active(self, repo: str) -> int:
        return self._store.tally.active_of(repo)

    def _running(self, repo: str) -> bool:
        return bool(self._store.tally.running_of(repo))

    def _say_watched(self, repo: str, problem: str | None) -> None:
        if problem is None:
            self._unwatchable.pop(repo, None)
        else:
            self._unwatchable[repo] = problem

    def slow(self, repo: str) -> str | None:
        """Why a change in a checkout may not be seen at once."""
        if not self._limits.enabled:
            return "nobody looks at checkouts: status.enabled = false"
        why = self.given_up or self.unwatched or self._unwatchable.get(repo)
        if not self._limits.watch:
            why = "status.watch = false"
        if why is None:
            return None
        return (
            f"its files are not watched ({why}): a change is seen when a job has ended,"
            " and in the safety round"
        )

    def _say_looked(self, repo: str) -> None:
        for tell in self.looked:
            tell(repo)

    def _say_unwatched(self, problem: str | None) -> None:
        self.unwatched = problem
