"""What jobs print, as callers read and follow it: attempt by attempt, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.jobs import RESERVED, TERMINAL
from forge_actors.edges.node import logs
from forge_actors.runtime.orders import log_base

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from forge_actors.domain.jobs import JobView
    from forge_actors.domain.requests import LogChunk
    from forge_actors.edges.node.launcher import NodeLauncher
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.endings import Endings

STREAMS: tuple[logs.Stream, ...] = ("stdout", "stderr")


def stream_of(name: str) -> logs.Stream:
    for stream in STREAMS:
        if stream == name:
            return stream
    raise InvalidInput("stream", f"{name!r} is no stream", allowed=STREAMS)


class JobOutput:
    """The part of `Control` that reads logs. `view` gives a job by its id."""

    def __init__(
        self,
        home: Path,
        store: SqliteStore,
        launcher: NodeLauncher,
        endings: Endings,
        view: Callable[[str], JobView],
    ) -> None:
        self._home = str(home)
        self._store = store
        self._launcher = launcher
        self._endings = endings
        self._view = view

    async def read(
        self,
        job_id: str,
        stream: logs.Stream,
        offset: int,
        *,
        limit: int,
        wait: bool,
        attempt: int | None,
    ) -> LogChunk:
        while True:
            # Whether it has ended is asked first: what is read after that is complete.
            job = self._view(job_id)
            number = job.attempt if attempt is None else min(attempt, job.attempt)
            passed = number < job.attempt
            ended = job.state in TERMINAL and not passed
            base = log_base(self._home, job_id, number)
            # Before it is read: what comes in between must not be waited for.
            known = sum(logs.size(base, each) for each in STREAMS) if wait else 0
            lost = int(job.usage.get(f"{stream}_lost", 0)) if ended else 0
            chunk = logs.read(base, stream, offset, limit, ended=ended, lost=lost)
            chunk.attempt = number
            if passed and not chunk.data and not chunk.missing:
                attempt, offset = number + 1, 0
                continue
            if chunk.data or chunk.missing or ended or not wait:
                return chunk
            await self.wait(job_id, known, number)

    async def wait(self, job_id: str, known: int, attempt: int | None) -> None:
        job = self._view(job_id)
        if job.state in TERMINAL:
            return
        async with trio.open_nursery() as nursery:

            async def until_end() -> None:
                await self._endings.wait([job_id])
                nursery.cancel_scope.cancel()

            nursery.start_soon(until_end)
            while job.state not in RESERVED:
                await self._store.committed.wait_transition()
                job = self._view(job_id)
            # Of another attempt there may be less than that, for as long as it runs.
            if attempt in (None, job.attempt):
                await self._launcher.wait_output(job_id, job.attempt, known)
            nursery.cancel_scope.cancel()
