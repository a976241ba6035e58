"""What the tests of the projections share: the actor over fakes."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.actors import projections
from forge_actors.actors.mailbox import Mailbox
from forge_actors.actors.projections_messages import Board, LimitsChanged, Message
from forge_actors.domain.looking import Look, LookLimits
from forge_actors.testing.checkouts import FakeCheckouts, FakeSampler, FakeWatch
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.made_changes import repository
from forge_actors.testing.store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from forge_actors.domain.events import Event
    from forge_actors.domain.repositories import Repository

#: Seconds after which what is due has been done.
SOON = 1.0


class World:
    """Projections over fakes, and what a test does with them."""

    def __init__(self, *names: str, store: MemoryStore | None = None) -> None:
        self.checkouts = FakeCheckouts()
        self.sampler = FakeSampler(self.checkouts)
        self.watch = FakeWatch(self.checkouts)
        self.clock = FakeClock()
        self.store = MemoryStore() if store is None else store
        self.names = names
        self.board = Board()
        self.limits = LookLimits(watch=False, period=86_400.0)
        self.active: set[str] = set()
        self.running: set[str] = set()
        self.saving = True
        self.notices: list[str | None] = []
        self.looked: list[str] = []
        #: Why files of a repository are not watched.
        self.watched: dict[str, str | None] = {}
        self.mailbox: Mailbox[Message]

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[World, None]:
        async with self.store.open(), trio.open_nursery() as nursery:
            known = self.store.durable.repositories
            added = [repository(name) for name in self.names if name not in known]
            await self.store.save(added).wait()
            self.mailbox = await nursery.start(projections.run, self._context())
            yield self
            nursery.cancel_scope.cancel()

    def _context(self) -> projections.Context:
        return projections.Context(
            store=self.store,
            sampler=self.sampler,
            watch=self.watch,
            clock=self.clock,
            board=self.board,
            limits=lambda: self.limits,
            repository=self.repository,
            fence=lambda repo: self.store.durable.repositories[repo].fence,
            active=lambda repo: repo in self.active,
            running=lambda repo: repo in self.running,
            saving=lambda: self.saving,
            unwatched=self.notices.append,
            looked=self.looked.append,
            watched=self.watched.__setitem__,
        )

    def repository(self, repo: str) -> Repository | None:
        known = self.store.durable.repositories.get(repo)
        return None if known is None or known.removed_at is not None else known

    def look(self, repo: str) -> Look:
        look = self.store.look(repo)
        assert look is not None
        return look

    def set(self, **changes: object) -> None:
        """Let other limits hold."""
        self.limits = structs.replace(self.limits, **changes)
        self.mailbox.tell(LimitsChanged())

    @property
    def told(self) -> list[Event]:
        kind = "repository_status_changed"
        return [event for event in self.store.durable.events if event.kind == kind]
