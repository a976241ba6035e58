"""What the tests of the watch of issues share: both actors over a GitHub for tests."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import trio
import trio.testing
from msgspec import structs

from forge_actors.actors import issue_watches
from forge_actors.actors.issue_watches_messages import Follow, Leave
from forge_actors.actors.schedules_messages import Find
from forge_actors.domain.causes import Issues
from forge_actors.domain.github.issues import ChangedPage, GitHubFailed
from forge_actors.domain.github.places import GITHUB, Place
from forge_actors.domain.triggers import On
from forge_actors.testing import github
from forge_actors.testing.github import FakeGitHub
from tests.actors.schedules_kit import World

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from forge_actors.actors.issue_watches_messages import Message
    from forge_actors.actors.mailbox import Mailbox
    from forge_actors.actors.schedules_messages import Signalled
    from forge_actors.domain.errors import ForgeError
    from forge_actors.domain.github.issues import ChangedQuery
    from forge_actors.domain.schedules import Schedule

DEMO = Place(GITHUB, "octo", "demo")


class Asked(FakeGitHub):
    """One that counts its questions, and may fail or take its time."""

    def __init__(self, world: github.World) -> None:
        super().__init__(world)
        self.queries: list[ChangedQuery] = []
        self.same = 0
        #: Seconds that an answer takes, and how many are under way.
        self.takes = 0.0
        self.under_way = self.most = 0
        self.pace = 0.0
        self.bug: Exception | None = None

    async def changed(self, place: Place, query: ChangedQuery) -> ChangedPage:
        self.queries.append(query)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await trio.sleep(self.takes)
        finally:
            self.under_way -= 1
        if self.bug is not None:
            raise self.bug
        page = await super().changed(place, query)
        self.same += page.same
        return structs.replace(page, pace=self.pace)


class Watch:
    """Schedules that wait for issues of octo/demo, and its people."""

    def __init__(self, before: Watch | None = None) -> None:
        """As after a crash, if there was one before."""
        if before is None:
            self.github = github.World()
            self.repository = self.github.repository("octo", "demo")
        else:
            self.github, self.repository = before.github, before.repository
        self.world = World(None if before is None else before.world.store)
        if before is not None:
            self.world.requests = before.world.requests
        self.reader = Asked(self.github)
        #: Why there is no reader.
        self.unreadable: ForgeError | None = None
        self.at_once = 50
        self._mailbox: Mailbox[Message]

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Watch, None]:
        self.world.source = self  # type: ignore[assignment]
        async with trio.open_nursery() as nursery:
            context = issue_watches.Context(
                clock=self.world.clock,
                github=self._reader,
                schedule=self._schedule,
                tell=self._tell,
                at_once=lambda: self.at_once,
            )
            self._mailbox = await nursery.start(issue_watches.run, context)
            async with self.world.open():
                yield self
            nursery.cancel_scope.cancel()

    def _reader(self) -> FakeGitHub:
        if self.unreadable is not None:
            raise self.unreadable
        return self.reader

    async def _schedule(self, key: str) -> Schedule | None:
        return await self.world.mailbox.ask(partial(Find, key))

    def _tell(self, message: Signalled) -> None:
        self.world.mailbox.tell(message)

    def follow(self, schedule: Schedule) -> None:
        self._mailbox.tell(Follow(schedule))

    def leave(self, schedule: str) -> None:
        self._mailbox.tell(Leave(schedule))

    async def add(
        self,
        name: str = "s",
        labels: tuple[str, ...] = (),
        every: float = 60.0,
        **policies: Any,
    ) -> Schedule:
        """Add one; it has asked once when this returns."""
        trigger = On(Issues(DEMO, labels, every))
        made = await self.world.add(name, trigger, **{"overlap": "queue", **policies})
        await self.settle()
        return made

    async def settle(self) -> None:
        await trio.testing.wait_all_tasks_blocked()

    async def later(self, seconds: float = 60.0) -> None:
        """So much time goes by, for everybody."""
        await trio.sleep(seconds)
        await self.settle()

    @property
    def numbers(self) -> list[str]:
        """The issues whose jobs were submitted, in their order."""
        return [
            request.env["FORGE_ISSUE_NUMBER"]
            for request in self.world.requests.values()
        ]

    async def ended(self) -> None:
        """All that was submitted ends well."""
        jobs = self.world.store.durable.jobs
        for name in [each for each in self.world.requests if each in jobs]:
            if jobs[name].state == "queued":
                self.world.end(name)
        await self.settle()


def limited(wait: float) -> GitHubFailed:
    return GitHubFailed("rate-limited", "GitHub is asked too much", wait=wait)
