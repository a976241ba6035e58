"""The jobs of a `FakeControl`, and what they print."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio
from trio_util import AsyncValue

from forge_actors.domain.errors import NotFound, Refused
from forge_actors.domain.jobs import TERMINAL
from forge_actors.domain.requests import LogChunk
from forge_actors.runtime.moments import parse_moment

if TYPE_CHECKING:
    from forge_actors.domain.jobs import JobView

SHORTEST_SELECTOR = 4


class FakeOutput:
    """Output in memory; `write` and `begin_again` are for the test."""

    def __init__(self) -> None:
        self.views: dict[str, JobView] = {}
        self.output: dict[tuple[str, str], bytes] = {}
        #: The output of attempts before the last: (job, stream, attempt).
        self.earlier: dict[tuple[str, str, int], bytes] = {}
        #: Where output begins that came since a time: (job, stream, time) to offset.
        self.starts: dict[tuple[str, str, str], int] = {}
        #: Where bytes are missing: (job, stream) to (first, end).
        self.gaps: dict[tuple[str, str], tuple[int, int]] = {}
        self._held = AsyncValue(0)
        #: Raised by the next call of any kind.
        self.failure: Exception | None = None
        self._changed = trio.Event()

    # What a test does

    @property
    def held(self) -> int:
        """Requests that are held right now."""
        count: int = self._held.value
        return count

    async def until_held(self, requests: int) -> None:
        """Wait until so many requests are held at once."""
        await self._held.wait_value(requests)

    def write(self, job: str, data: bytes, *, stream: str = "stdout") -> None:
        self.output[job, stream] = self.output.get((job, stream), b"") + data
        self._wake()

    def begin_again(self, job: str) -> None:
        """The attempt is over and the next one begins."""
        attempt = max(1, self.views[job].attempt)
        for stream in ("stdout", "stderr"):
            self.earlier[job, stream, attempt] = self.output.pop((job, stream), b"")
        self.views[job] = msgspec.structs.replace(self.views[job], attempt=attempt + 1)
        self._wake()

    # What entry points ask

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
        await self._begin()
        job = self._find(selector).id
        while True:
            number = attempt or max(1, self.views[job].attempt)
            whole = self._output(job, stream, number)
            start = max(0, len(whole) + offset) if offset < 0 else offset
            first, end = self.gaps.get((job, stream), (0, 0))
            missing = max(0, end - start) if start >= first else 0
            start += missing
            stop = first if start < first else len(whole)
            data = whole[start : min(stop, start + limit)]
            ended = self._is_over(job, number) and start + len(data) >= len(whole)
            if data or missing or ended or not wait:
                return LogChunk(start, data, missing, ended)
            await self._change()

    async def wait_output(
        self, selector: str, known: int, *, attempt: int | None = None
    ) -> None:
        await self._begin()
        job = self._find(selector).id
        number = attempt or max(1, self.views[job].attempt)

        def waits() -> bool:
            sizes = (self._output(job, name, number) for name in ("stdout", "stderr"))
            begun = max(1, self.views[job].attempt) >= number
            return not begun or sum(map(len, sizes)) <= known

        while waits() and not self._is_over(job, number):
            await self._change()

    async def log_start(
        self, selector: str, stream: str, since: str, *, attempt: int | None = None
    ) -> int:
        await self._begin()
        job = self._find(selector).id
        parse_moment(since, 0.0, field="since")
        return self.starts.get((job, stream, since), 0)

    def _output(self, job: str, stream: str, attempt: int) -> bytes:
        if attempt < max(1, self.views[job].attempt):
            return self.earlier.get((job, stream, attempt), b"")
        return self.output.get((job, stream), b"")

    def _is_over(self, job: str, attempt: int) -> bool:
        view = self.views[job]
        return view.state in TERMINAL or max(1, view.attempt) > attempt

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _change(self) -> None:
        self._held.value += 1
        try:
            await self._changed.wait()
        finally:
            self._held.value -= 1

    async def _begin(self) -> None:
        await trio.lowlevel.checkpoint()
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def _find(self, selector: str) -> JobView:
        found = [
            job
            for job in self.views
            if job == selector
            or (
                len(selector) >= SHORTEST_SELECTOR
                and (job.startswith(selector) or job.endswith(selector))
            )
        ]
        if len(found) > 1:
            raise Refused(f"{selector!r} means {len(found)} jobs")
        if not found:
            raise NotFound(f"there is no job {selector!r}")
        return self.views[found[0]]
