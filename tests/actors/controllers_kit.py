"""What the tests of controllers share: their actor over fakes."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import trio
import trio.testing

from forge_actors.actors import controllers
from forge_actors.actors.controllers_messages import Add, Rouse, Say, Tell
from forge_actors.domain.controller_records import wake_from
from forge_actors.domain.controllers import Controller, Limits
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.controllers import FakeHost
from forge_actors.testing.made_changes import ended_waiting, job, repository
from forge_actors.testing.store import MemoryStore
from tests.actors.schedules_kit import FakeWallTimer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from forge_actors.actors.mailbox import Mailbox
    from forge_actors.domain.controllers import By, Disposition, Wake
    from forge_actors.domain.jobs import State


class World:
    """The controllers of a runtime over fakes, and what a test does with them."""

    def __init__(
        self, store: MemoryStore | None = None, host: FakeHost | None = None
    ) -> None:
        self.clock = FakeClock()
        self.timer = FakeWallTimer(self.clock)
        self.store = MemoryStore() if store is None else store
        self.host = FakeHost() if host is None else host
        self.mailbox: Mailbox[controllers.Message]
        self.seen = "seen"
        self.said: dict[str, str] = {}
        self.closed: str | None = None
        self.freed = 0

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[World, None]:
        context = controllers.Context(
            store=self.store,
            clock=self.clock,
            timer=self.timer,
            host=lambda _: self.host,
            seen=lambda _: self.seen,
            said=self._said,
            asked=lambda controller, wake: f"{controller.prompt} {wake.by}",
            freed=self._free,
            closed=lambda: self.closed,
        )
        async with self.store.open(), trio.open_nursery() as nursery:
            if not self.store.durable.repositories:
                await self.store.save([repository(), job("job0")]).wait()
                await self.end("job0")
            self.mailbox = await nursery.start(controllers.run, context)
            yield self
            nursery.cancel_scope.cancel()

    async def add(self, name: str = "fixer", **fields: Any) -> Controller:
        given = {
            "id": f"id-{name}",
            "name": name,
            "repo": "repo",
            "host": "fake",
            "binding": {"place": "here"},
            "prompt": "Go on.",
            "limits": Limits(),
            "job": "job0",
            "made": self.clock.wall(),
            **fields,
        }
        return await self.mailbox.ask(partial(Add, Controller(**given)))

    async def rouse(
        self,
        wake: str,
        by: By = "schedule",
        name: str = "fixer",
        *,
        news: bool = False,
    ) -> Wake:
        return await self.mailbox.ask(
            lambda reply: Rouse(name, wake, by, "schedule:s", reply, news=news)
        )

    async def say(
        self,
        disposition: Disposition,
        job: str | None = None,
        name: str | None = None,
        note: str = "",
    ) -> Controller:
        return await self.mailbox.ask(partial(Say, name, job, disposition, note, ""))

    async def now(self, name: str = "fixer") -> Controller:
        found: list[Controller] = await self.mailbox.ask(Tell)
        return next(one for one in found if one.name == name)

    async def begin(self, key: str) -> None:
        """A job that the host makes next."""
        await self.store.save([job(key)]).wait()
        self.host.jobs.append(key)

    async def end(self, key: str, state: State = "succeeded") -> None:
        await self.store.save([ended_waiting(key, state=state)]).wait()
        await trio.testing.wait_all_tasks_blocked()

    def wakes(self) -> dict[str, str]:
        """What became of each, as it is durable."""
        rows = self.store.durable.wakes.items()
        assert all(wake_from(row[3]).state == row[2] for _, row in rows)
        return {key: row[2] for key, row in rows}

    def told(self, kind: str) -> list[dict[str, object]]:
        return [e.data for e in self.store.durable.events if e.kind == kind]

    async def _said(self, key: str) -> str:
        await trio.lowlevel.checkpoint()
        return self.said.get(key, key)

    def _free(self) -> None:
        self.freed += 1
