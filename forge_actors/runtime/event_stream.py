"""The events of a runtime and the output of its jobs, for a program that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.events import EventQuery
from forge_actors.domain.jobs import TERMINAL

if TYPE_CHECKING:
    from forge_actors.domain.events import EventView
    from forge_actors.runtime.control import RuntimeControl

EVENT_PAGE = 1000
#: Bytes of output that are read at once.
OUTPUT_BYTES = 256 * 1024
#: The event with which a job has ended.
_ENDS = frozenset(f"job_{state}" for state in TERMINAL)


class EventStream:
    """An asynchronous iterator over events until the runtime ends; none is skipped.

    Of one `job` only its own, from the first to the one with which it has ended.
    """

    def __init__(
        self, control: RuntimeControl, after: int | None, *, job: str | None = None
    ) -> None:
        first = control.last_event if after is None else after
        jobs = () if job is None else (job,)
        self._control = control
        self._query = EventQuery(after=first, limit=EVENT_PAGE, job=jobs)
        self._page: list[EventView] = []
        self._ended = False

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> EventView:
        if self._ended:
            raise StopAsyncIteration
        if not self._page:
            page = await self._control.events(self._query, wait=True)
            if not page.events:
                raise StopAsyncIteration
            self._page = page.events[::-1]
            self._query = page.next
        event = self._page.pop()
        self._ended = bool(self._query.job) and event.kind in _ENDS
        return event


class OutputStream:
    """An asynchronous iterator over one stream of a job's output, as it comes, until
    that attempt is over. What was not kept is left out."""

    def __init__(
        self, control: RuntimeControl, job: str, stream: str, attempt: int | None
    ) -> None:
        self._control = control
        self._job = job
        self._stream = stream
        self._attempt = attempt
        self._offset = 0

    def __aiter__(self) -> OutputStream:
        return self

    async def __anext__(self) -> bytes:
        while True:
            chunk = await self._control.read_log(
                *(self._job, self._stream, self._offset),
                limit=OUTPUT_BYTES,
                wait=True,
                attempt=self._attempt,
            )
            self._offset = chunk.next_offset
            if chunk.data:
                return chunk.data
            if chunk.ended:
                raise StopAsyncIteration
