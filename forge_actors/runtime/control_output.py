"""What can be read of a runtime as it comes: the output of jobs, and the events."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import trio

from forge_actors.domain.jobs import RESERVED, TERMINAL
from forge_actors.domain.requests import LogChunk
from forge_actors.edges.node import logs
from forge_actors.runtime.control_base import ControlBase
from forge_actors.runtime.kept_logs import STREAMS, kept_start, stream_named
from forge_actors.runtime.moments import parse_moment
from forge_actors.runtime.orders import log_base

if TYPE_CHECKING:
    from forge_actors.domain.events import EventPage, EventQuery
    from forge_actors.domain.jobs import State


class _Progress(NamedTuple):
    """How far a job is: its state, and how many attempts were begun."""

    state: State
    attempt: int

    def runs(self, attempt: int) -> bool:
        return self.state in RESERVED and self.attempt == attempt

    def is_over(self, attempt: int) -> bool:
        """Whether this attempt can print nothing any more, or will never begin."""
        if self.state in TERMINAL or self.attempt > attempt:
            return True
        return self.attempt == attempt and self.state not in RESERVED


class OutputControl(ControlBase):
    """The part of the port `Control` that is about output and events."""

    async def read_log(
        self,
        selector: str,
        stream: str,
        offset: int,
        *,
        limit: int,
        wait: bool = False,
        attempt: int | None = None,
    ) -> LogChunk:
        which = stream_named(stream)
        job_id = self._store.match(selector)
        while True:
            # Whether it is over is asked first: what is read after that is complete.
            now = self._progress(job_id)
            number = attempt or max(1, now.attempt)
            over = now.is_over(number)
            base = log_base(str(self._home), job_id, number)
            # Before it is read: what comes in between must not be waited for.
            known = sum(logs.size(base, each) for each in STREAMS) if wait else 0
            chunk = logs.read(base, which, offset, limit)
            if over and not (chunk.data or chunk.missing):
                end = chunk.offset + self._lost(job_id, which, number)
                missing = max(0, end - max(offset, chunk.offset))
                return LogChunk(end, b"", missing, ended=True)
            if chunk.data or chunk.missing or over or not wait:
                return LogChunk(
                    chunk.offset, chunk.data, chunk.missing, over and not chunk.data
                )
            await self.wait_output(job_id, known, attempt=number)

    async def wait_output(
        self, selector: str, known: int, *, attempt: int | None = None
    ) -> None:
        job_id = self._store.match(selector)
        now = self._progress(job_id)
        number = attempt or max(1, now.attempt)
        if now.is_over(number):
            return
        async with trio.open_nursery() as nursery:

            async def until_end() -> None:
                await self._endings.wait([job_id])
                nursery.cancel_scope.cancel()

            nursery.start_soon(until_end)
            while not (now.runs(number) or now.is_over(number)):
                await self._store.committed.wait_transition()
                now = self._progress(job_id)
            if now.runs(number):
                await self._launcher.wait_output(job_id, number, known)
            nursery.cancel_scope.cancel()

    async def log_start(
        self, selector: str, stream: str, since: str, *, attempt: int | None = None
    ) -> int:
        moment = parse_moment(since, self._clock.wall(), field="since")
        job = self._view(self._row(self._store.match(selector)))
        return kept_start(str(self._home), job, stream_named(stream), moment, attempt)

    def _lost(self, job_id: str, stream: str, attempt: int) -> int:
        """How many bytes its receipt says the log could not take, at the end."""
        job = self._view(self._row(job_id))
        lost = job.usage.get(f"{stream}_lost", 0)
        return int(lost) if job.attempt == attempt else 0

    def _progress(self, job_id: str) -> _Progress:
        [(state, attempt)] = self._store.read("job_progress", job_id)
        return _Progress(state, attempt)

    @property
    def last_event(self) -> int:
        """The number of the last event that is durable."""
        return self._events.last

    async def events(self, query: EventQuery, *, wait: bool) -> EventPage:
        return await self._events.page(query, wait=wait)

    async def event_range(self) -> tuple[int, int]:
        return self._events.first, self._events.last
