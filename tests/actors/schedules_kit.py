"""What the tests of the schedules share: the actor over fakes."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import trio
import trio.testing
from msgspec import structs

from forge_actors.actors import schedules
from forge_actors.actors.schedules_messages import Put, Signalled, Tell
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.schedules import Definition, Policies
from forge_actors.domain.triggers import Every, Trigger
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.made_changes import (
    dispatched,
    ended,
    ended_waiting,
    job,
    ran,
    repository,
)
from forge_actors.testing.store import MemoryStore
from forge_actors.testing.wall_timer import FakeWallTimer as FakeWallTimer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from forge_actors.actors.mailbox import Mailbox
    from forge_actors.actors.schedules_messages import Message
    from forge_actors.domain.jobs import State
    from forge_actors.domain.schedules import Hindrance, Occurrence, Schedule
    from forge_actors.domain.triggers import Window


class FakeSource:
    """A source of which a test knows whom it follows."""

    def __init__(self) -> None:
        self.followed: dict[str, Schedule] = {}

    def follow(self, schedule: Schedule) -> None:
        self.followed[schedule.id] = schedule

    def leave(self, schedule: str) -> None:
        self.followed.pop(schedule, None)


class World:
    """Schedules over fakes, and what a test does with them."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.clock = FakeClock()
        self.timer = FakeWallTimer(self.clock)
        self.store = MemoryStore() if store is None else store
        self.mailbox: Mailbox[Message]
        #: What was submitted, by the id of its job.
        self.requests: dict[str, JobRequest] = {}
        self.cancelled: list[str] = []
        #: Raised by each submission; and how long one takes.
        self.refusal: Exception | None = None
        self.takes = 0.0
        self.dirty: bool | None = False
        self.closed: str | None = None
        self.hindrances: dict[Hindrance, str] = {}
        #: The repositories in which something is held back.
        self.held: set[str] = set()
        self.source = FakeSource()
        #: Controllers that were woken; whether their host makes no jobs.
        self.woken: list[str | None] = []
        self.without_job = False
        #: Repositories that were removed.
        self.removed: set[str] = set()

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[World, None]:
        async with self.store.open(), trio.open_nursery() as nursery:
            if not self.store.durable.repositories:
                await self.store.save([repository()]).wait()
            context = schedules.Context(
                store=self.store,
                clock=self.clock,
                timer=self.timer,
                submit=self._submit,
                wake=self._wake,
                cancel=self._cancel,
                dirty=lambda _: self.dirty,
                closed=lambda: self.closed,
                hindrances=lambda _: self.hindrances,
                held=self.held,
                known=lambda repo: repo not in self.removed,
                sources=(self.source,),
            )
            self.mailbox = await nursery.start(schedules.run, context)
            yield self
            nursery.cancel_scope.cancel()

    async def _submit(self, request: JobRequest) -> str:
        await trio.sleep(self.takes)
        if self.refusal is not None:
            raise self.refusal
        key = request.request_id
        assert key is not None
        known = self.store.job_of_request(key)
        if known is not None:
            return known
        name = f"job{len(self.requests)}"
        added = job(name)
        details = structs.replace(added.details, request_id=key)
        self.requests[name] = request
        await self.store.save([structs.replace(added, details=details)]).wait()
        return name

    async def _wake(self, schedule: Schedule, request: JobRequest) -> str | None:
        self.woken.append(schedule.definition.wake)
        if self.without_job:
            await trio.lowlevel.checkpoint()
            return None
        return await self._submit(request)

    async def _cancel(self, name: str) -> None:
        self.cancelled.append(name)
        self.end(name, "cancelled")

    def end(self, name: str, state: State = "succeeded") -> None:
        fence = self.store.durable.jobs[name].fence
        self.store.save(
            [
                ended(name, state=state, fence=fence)
                if self.store.durable.jobs[name].state == "running"
                else ended_waiting(name, state=state)
            ]
        )

    def run_job(self, name: str, fence: int) -> None:
        self.store.save([dispatched(name, fence=fence), ran(name, fence=fence)])

    async def add(
        self, name: str = "s", trigger: Trigger | None = None, **policies: Any
    ) -> Schedule:
        definition = made(name, trigger, **policies)
        return await self.mailbox.ask(partial(Put, definition, None))

    async def tell(
        self,
        *windows: Window,
        name: str = "s",
        begun: int | None = None,
        seen: str | None = "seen",
        **more: Any,
    ) -> None:
        """Something came to pass; return when that is decided."""
        schedule = await self.now(name)
        begun = schedule.progress.begun if begun is None else begun
        self.mailbox.tell(Signalled(schedule.id, begun, seen, windows, **more))
        await self.now(name)
        await trio.testing.wait_all_tasks_blocked()

    async def now(self, name: str = "s") -> Schedule:
        found: list[Schedule] = await self.mailbox.ask(Tell)
        return next(one for one in found if one.name == name)

    async def told(self, name: str = "s") -> list[Occurrence]:
        """What became of its windows, oldest first."""
        schedule = await self.now(name)
        return self.store.occurrences(schedule.id, 1000)[::-1]

    def decided(self) -> list[Any]:
        """What the history says of windows."""
        events = self.store.durable.events
        return [e.data["decision"] for e in events if e.kind == "schedule_decided"]


def made(
    name: str = "s", trigger: Trigger | None = None, **policies: Any
) -> Definition:
    request = JobRequest(repo="repo", argv=["true"])
    return Definition(
        name, "repo", trigger or Every(60.0), request, Policies(**policies)
    )
