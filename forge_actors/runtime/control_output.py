"""What can be read of a runtime as it comes: the output of jobs, and the events."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio
from trio_util import wait_any

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.jobs import RESERVED, TERMINAL
from forge_actors.domain.requests import LogChunk
from forge_actors.edges.node import logs
from forge_actors.runtime.control_base import ControlBase
from forge_actors.runtime.groups import only_failure
from forge_actors.runtime.orders import log_base
from forge_actors.runtime.views import shown_event

if TYPE_CHECKING:
    from forge_actors.domain.events import Event
    from forge_actors.domain.jobs import JobView

STREAMS: tuple[logs.Stream, ...] = ("stdout", "stderr")


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
    ) -> LogChunk:
        which = _stream(stream)
        job_id = self._store.match(selector)
        while True:
            # Whether it has ended is asked first: what is read after that is complete.
            job = self._view(self._row(job_id))
            ended = job.state in TERMINAL
            base = self._log(job)
            # Before it is read: what comes in between must not be waited for.
            known = sum(logs.size(base, each) for each in STREAMS) if wait else 0
            lost = int(job.usage.get(f"{which}_lost", 0)) if ended else 0
            chunk = logs.read(base, which, offset, limit, ended=ended, lost=lost)
            if chunk.data or chunk.missing or ended or not wait:
                return chunk
            await self.wait_output(job_id, known)

    async def wait_output(self, selector: str, known: int) -> None:
        job_id = self._store.match(selector)
        job = self._view(self._row(job_id))
        if job.state in TERMINAL:
            return
        async with trio.open_nursery() as nursery:

            async def until_end() -> None:
                await self._endings.wait([job_id])
                nursery.cancel_scope.cancel()

            nursery.start_soon(until_end)
            while job.state not in RESERVED:
                await self._store.committed.wait_transition()
                job = self._view(self._row(job_id))
            await self._launcher.wait_output(job_id, job.attempt, known)
            nursery.cancel_scope.cancel()

    def _log(self, job: JobView) -> str:
        return log_base(str(self._home), job.id, job.attempt)

    @property
    def last_event(self) -> int:
        """The number of the last event that is durable."""
        last: int = self._store.committed.value
        return last

    async def events(self, after: int, *, limit: int, wait: bool) -> list[Event]:
        if wait:
            committed = self._store.committed
            try:
                await wait_any(
                    partial(committed.wait_value, lambda last: last > after),
                    self._closed.wait,
                )
            except BaseExceptionGroup as group:
                raise only_failure(group) from None
        found = self._store.events(after, limit)
        return [shown_event(event, self._roots) for event in found]


def _stream(name: str) -> logs.Stream:
    for stream in STREAMS:
        if stream == name:
            return stream
    raise InvalidInput("stream", f"{name!r} is no stream", allowed=STREAMS)
