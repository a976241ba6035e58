"""What the tests of the lookout share: the actor over fakes."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio
import trio.testing
from msgspec import structs

from forge_actors.actors import lookout
from forge_actors.actors.lookout_messages import Follow, Leave, Looked
from forge_actors.domain.causes import parse_cause
from forge_actors.domain.changes import LookSaved
from forge_actors.domain.events import Event
from forge_actors.domain.looking import Look
from forge_actors.domain.schedules import Progress, Schedule
from forge_actors.domain.triggers import On
from forge_actors.testing.clock import START, FakeClock
from forge_actors.testing.made_changes import dispatched, ended, job, repository
from forge_actors.testing.store import MemoryStore
from tests.actors.schedules_kit import made

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from forge_actors.actors.lookout_messages import Message
    from forge_actors.actors.mailbox import Mailbox
    from forge_actors.actors.schedules_messages import Signalled
    from forge_actors.domain.errors import ForgeError
    from forge_actors.domain.git_status import GitStatus
    from forge_actors.domain.jobs import State
    from forge_actors.domain.repositories import Repository


class FakeCommits:
    """The port `CommitReader`: branches as a test has them, `main` checked out."""

    def __init__(self) -> None:
        self.branches: dict[str, str] = {"main": "a" * 40}
        #: The files that are other ones in a commit.
        self.files: dict[str, list[str]] = {}
        self.refusal: ForgeError | None = None
        self.reads = 0
        #: Seconds that one takes.
        self.takes = 0.0

    async def heads(self, _: Repository) -> tuple[dict[str, str], str | None]:
        self.reads += 1
        found = dict(self.branches)
        await trio.sleep(self.takes)
        if self.refusal is not None:
            raise self.refusal
        return found, found.get("main")

    async def changed(
        self, _: Repository, before: str | None, now: str, pattern: str
    ) -> list[str] | None:
        assert before != now
        return [name for name in self.files[now] if name.startswith(pattern)]


class World:
    """A lookout, and the schedules that it tells as if they had saved it."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.clock = FakeClock()
        self.commits = FakeCommits()
        self.mailbox: Mailbox[Message]
        self.watched: frozenset[str] = frozenset()
        self.told: list[Signalled] = []
        self.schedules: dict[str, Schedule] = {}
        self._jobs = 0
        self._nonce = 0

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[World, None]:
        async with self.store.open(), trio.open_nursery() as nursery:
            if not self.store.durable.repositories:
                await self.store.save([repository(), repository("other")]).wait()
            context = lookout.Context(
                store=self.store,
                clock=self.clock,
                commits=self.commits,
                repository=self.store.durable.repositories.get,
                watch=self._watch,
                tell=self._tell,
            )
            self.mailbox = await nursery.start(lookout.run, context)
            for schedule in self.schedules.values():
                self.mailbox.tell(Follow(schedule))
            await self.settle()
            yield self
            nursery.cancel_scope.cancel()

    def _watch(self, repos: frozenset[str]) -> None:
        self.watched = repos

    def _tell(self, told: Signalled) -> None:
        self.told.append(told)
        known = self.schedules[told.schedule]
        progress = structs.replace(known.progress, seen=told.seen, blind=told.blind)
        self.schedules[known.id] = structs.replace(known, progress=progress)

    async def settle(self) -> None:
        await trio.testing.wait_all_tasks_blocked(0.001)

    async def follow(
        self,
        on: str,
        name: str = "s",
        repo: str = "repo",
        seen: str | None = None,
        begun: int = 0,
    ) -> None:
        definition = structs.replace(made(name, On(parse_cause(on))), repo=repo)
        progress = Progress(START, seen=seen, begun=begun)
        self.schedules[name] = Schedule(name, 1, definition, progress)
        self.mailbox.tell(Follow(self.schedules[name]))
        await self.settle()

    async def leave(self, name: str = "s") -> None:
        self.mailbox.tell(Leave(name))
        await self.settle()

    async def end(
        self,
        name: str | None = None,
        state: State = "succeeded",
        repo: str = "repo",
        **details: object,
    ) -> str:
        """A job comes and ends."""
        self._jobs += 1
        key = f"job{self._jobs}"
        added = job(key, repo)
        more = structs.replace(added.details, name=name, **details)
        await self.store.save([structs.replace(added, details=more)]).wait()
        await self.finish(key, state, repo)
        return key

    async def finish(
        self, key: str, state: State = "succeeded", repo: str = "repo"
    ) -> None:

        fence = self.store.durable.repositories[repo].fence + 1
        await self.store.save(
            [
                dispatched(key, repo, fence=fence),
                ended(key, repo, state, fence=fence),
            ]
        ).wait()
        await self.settle()

    async def look(self, status: GitStatus) -> None:
        """The checkout was looked at."""

        self._nonce += 1
        look = Look("repo", status, nonce=self._nonce)
        event = Event("repository_status_changed", START, "repo")
        await self.store.save([LookSaved(look, event)]).wait()
        self.mailbox.tell(Looked("repo"))
        await self.settle()

    def windows(self, name: str = "s") -> list[str]:
        """The keys of the windows that a schedule was told of."""
        return [
            window.key
            for told in self.told
            if told.schedule == name
            for window in told.windows
        ]
