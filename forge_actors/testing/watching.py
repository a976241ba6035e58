"""The part of the fake control that is watched: its events, its state, its drain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import msgspec
import trio

from forge_actors.domain.errors import Refused
from forge_actors.domain.events import EventPage, EventQuery, EventView
from forge_actors.domain.jobs import ACTIVE, RESERVED
from forge_actors.domain.maintenance import CleanResult
from forge_actors.domain.releases import ReleaseCheck
from forge_actors.runtime.moments import parse_moment
from forge_actors.testing.output import FakeOutput

if TYPE_CHECKING:
    from forge_actors.domain.cleaning import CleanRequest
    from forge_actors.domain.repositories import RepositoryView

STARTED = "2026-01-02T03:04:05Z"


class FakeWatching(FakeOutput, ABC):
    """Events, and everything that is held until something changes."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[EventView] = []
        self.stop_requested = trio.Event()
        self.ends_jobs = False
        #: What a look at the active release finds; set by the test.
        self.release_check = ReleaseCheck(
            release="0-mine", active="0-mine", revision=1, superseded=False, running=0
        )
        #: What was asked of the clean-up, and what it answers.
        self.cleaned: list[CleanRequest] = []
        self.clean_result = CleanResult()
        #: Set by the test; `set_ready` wakes those who wait for it.
        self.ready = True
        self.draining = False

    @abstractmethod
    async def repository(self, name: str) -> RepositoryView: ...

    async def clean(self, request: CleanRequest) -> CleanResult:
        self.cleaned.append(request)
        return self.clean_result

    @property
    def last_event(self) -> int:
        return self.log[-1].seq if self.log else 0

    # What a test does

    def emit(
        self,
        kind: str,
        *,
        job: str | None = None,
        repo: str | None = None,
        **data: object,
    ) -> None:
        number = self.last_event + 1
        self.log.append(EventView(number, STARTED, kind, repo, job, data, repo))
        self._wake()

    def begin(self, job: str) -> None:
        """Let a job run."""
        self.views[job] = msgspec.structs.replace(
            self.views[job], state="running", waiting=None, started_at=STARTED
        )
        self._wake()

    def set_ready(self, ready: bool) -> None:
        self.ready = ready
        self._wake()

    # The port

    async def events(self, query: EventQuery, *, wait: bool) -> EventPage:
        await self._begin()
        for name in query.repo:
            await self.repository(name)
        if isinstance(query.since, str):
            parse_moment(query.since, 0.0, field="since")
        jobs = tuple(self._find(selector).id for selector in query.job)
        after = query.after
        if after is None:
            after = self.last_event if wait and query.since is None else 0
        while True:
            found = [
                event
                for event in self.log
                if event.seq > after
                and (not query.repo or event.repo in query.repo)
                and (not jobs or event.job in jobs)
                and (not query.kind or event.kind in query.kind)
            ]
            if found or not wait or self.stop_requested.is_set():
                break
            await self._change()
        cut = found[-query.limit :] if query.newest else found[: query.limit]
        full = len(cut) == query.limit and not query.newest
        after = cut[-1].seq if full else max(after, self.last_event)
        following = msgspec.structs.replace(query, after=after, newest=False)
        return EventPage(cut, following)

    async def event_range(self) -> tuple[int, int]:
        await self._begin()
        first = self.log[0].seq if self.log else self.last_event + 1
        return first, self.last_event

    async def wait_ready(self) -> None:
        await self._begin()
        while not self.ready:
            await self._change()

    async def wait_idle(self) -> None:
        await self._begin()
        while any(view.state in ACTIVE for view in self.views.values()):
            await self._change()

    async def drain(self) -> None:
        await self._begin()
        self.draining = True

    async def undrain(self) -> None:
        await self._begin()
        self.draining = False
        self._wake()

    async def wait_drained(self) -> None:
        await self._begin()
        while self.draining:
            if not any(view.state in RESERVED for view in self.views.values()):
                return
            await self._change()
        raise Refused("the drain was cancelled")

    def request_stop(self, *, jobs: bool = False) -> int:
        self.ends_jobs = self.ends_jobs or jobs
        self.stop_requested.set()
        self._wake()
        return sum(view.state in RESERVED for view in self.views.values())

    def check_release(self) -> ReleaseCheck:
        return self.release_check
