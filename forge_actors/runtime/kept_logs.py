"""The output that is kept of jobs, also in a home that nothing serves.

There the routes' own code reads it, so that every option means the same.
"""

from __future__ import annotations

import tempfile
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import trio

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import LogChunk
from forge_actors.edges.gateway import logs as routes
from forge_actors.edges.gateway.query import Query
from forge_actors.edges.node import logs
from forge_actors.runtime.moments import parse_moment
from forge_actors.runtime.orders import log_base

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from forge_actors.domain.jobs import JobView
    from forge_actors.edges.gateway.messages import Stream

    Parameters = Sequence[tuple[str, str | int | None]]

STREAMS: tuple[logs.Stream, ...] = ("stdout", "stderr")
PIECE = 256 * 1024


def stream_named(name: str) -> logs.Stream:
    """Raises InvalidInput if there is none of this name."""
    for stream in STREAMS:
        if stream == name:
            return stream
    raise InvalidInput("stream", f"{name!r} is no stream", allowed=STREAMS)


def kept_start(
    home: str, job: JobView, stream: logs.Stream, moment: float, attempt: int | None
) -> int:
    """The offset from which on the output of an attempt, the last one, came."""
    began = 0.0
    if job.started_at is not None and attempt in (None, job.attempt):
        began = datetime.fromisoformat(job.started_at).timestamp()
    base = log_base(home, job.id, attempt or max(1, job.attempt))
    return logs.since(base, stream, moment, began)


class KeptOutput:
    """The output of jobs of which none runs; `find` gives a job for a selector."""

    def __init__(self, home: str, find: Callable[[str], JobView], now: float) -> None:
        self._home = home
        self._find = find
        self._now = now

    def read(self, job: str, stream: str, query: Parameters) -> Iterator[bytes]:
        """What a `GET` of the output of one job would answer."""
        asked = Query(_encoded(query), routes.PARAMETERS)
        return _run(partial(routes.log_stream, self, job, stream, asked))

    def read_several(self, jobs: Sequence[str], query: Parameters) -> Iterator[bytes]:
        """What a `POST /v1/logs` would answer."""
        asked = Query(_encoded(query), routes.MANY_PARAMETERS)
        return _run(partial(routes.log_streams, self, jobs, asked))

    async def job(self, selector: str) -> JobView:
        await trio.lowlevel.checkpoint()
        return self._find(selector)

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
        job = await self.job(selector)
        base = log_base(self._home, job.id, attempt or max(1, job.attempt))
        chunk = logs.read(base, stream_named(stream), offset, limit)
        return LogChunk(chunk.offset, chunk.data, chunk.missing, not chunk.data)

    async def wait_output(
        self, selector: str, known: int, *, attempt: int | None = None
    ) -> None:
        """Nothing comes any more."""

    async def log_start(
        self, selector: str, stream: str, since: str, *, attempt: int | None = None
    ) -> int:
        moment = parse_moment(since, self._now, field="since")
        job = await self.job(selector)
        return kept_start(self._home, job, stream_named(stream), moment, attempt)


def _encoded(query: Parameters) -> str:
    """The parameters as a request carries them; what runs no more is not followed."""
    return urlencode(
        [
            (name, str(value))
            for name, value in query
            if value is not None and name != "follow"
        ]
    )


def _run(answer: Callable[[], Awaitable[Stream]]) -> Iterator[bytes]:
    with tempfile.TemporaryFile() as file:

        async def send(data: bytes) -> None:
            file.write(data)

        async def run() -> None:
            await (await answer()).produce(send)

        trio.run(run)
        file.seek(0)
        while piece := file.read(PIECE):
            yield piece
