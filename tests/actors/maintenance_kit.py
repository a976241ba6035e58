"""What the tests of maintenance share: its actor, a store in memory, no processes."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio
from msgspec import structs

from forge_actors.actors import maintenance
from forge_actors.actors.maintenance_context import Context
from forge_actors.actors.maintenance_messages import Clean, Message, Stop
from forge_actors.domain.cleaning import CleanRequest
from forge_actors.domain.errors import MailboxClosed
from forge_actors.domain.maintenance import Policy
from forge_actors.testing.clean_up import FakeCleanUp
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.made_changes import dispatched, ended, job, repository
from forge_actors.testing.store import MemoryStore, Rows

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from forge_actors.actors.mailbox import Mailbox
    from forge_actors.domain.maintenance import CleanResult

PERIOD = 60.0


class Kept:
    """A home whose maintenance actor may be started again and again."""

    def __init__(self, **behave: str) -> None:
        self.rows = Rows()
        self.clock = FakeClock()
        self.policy = Policy(period=PERIOD, rules={"behave": behave})
        self.store: MemoryStore
        self.clean_up: FakeCleanUp
        self.mailbox: Mailbox[Message]
        self.jobs = 0
        #: What the runtime was told of it.
        self.problems: list[str | None] = []

    def behave(self, **behave: str) -> None:
        rules = {"behave": behave}
        self.policy = structs.replace(self.policy, rules=rules)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """The actor runs while the block lasts, and is stopped then."""
        async with MemoryStore(durable=self.rows).open() as self.store:
            if not self.rows.repositories:
                await self.store.save([repository()]).wait()
            visits = self.store.class_visits
            self.clean_up = FakeCleanUp(
                lambda: {name: each.visited_at for name, each in visits().items()}
            )
            context = Context(
                home="/home",
                store=self.store,
                clock=self.clock,
                clean_up=self.clean_up,
                policy=lambda: self.policy,
                claim=None,
                is_busy=lambda: False,
                tell=self.problems.append,
            )
            async with trio.open_nursery() as nursery:
                self.mailbox = await nursery.start(maintenance.run, context)
                yield
                try:
                    self.mailbox.tell(Stop())
                except MailboxClosed:
                    nursery.cancel_scope.cancel()

    async def end_job(self, name: str = "") -> None:
        """Let a job end now."""
        self.jobs += 1
        name = name or f"job{self.jobs}"
        await self.store.save([job(name)]).wait()
        await self.store.save([dispatched(name, fence=self.jobs)]).wait()
        end = structs.replace(ended(name, fence=self.jobs), at=self.clock.now())
        await self.store.save([end]).wait()

    async def clean(self, **fields: Any) -> CleanResult:
        """Ask for a run, and wait for it."""
        request = CleanRequest("/home", self.clock.wall(), **fields)
        result: CleanResult = await self.mailbox.ask(
            lambda reply: Clean(request, reply)
        )
        return result

    @property
    def runs(self) -> int:
        return len(self.clean_up.orders)

    @property
    def told(self) -> list[str]:
        """The kinds of the events of clean-ups."""
        events = self.store.durable.events
        return [each.kind for each in events if each.kind.startswith("clean_")]
