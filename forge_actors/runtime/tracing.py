"""The traces of one runtime: a span for each attempt, told when that has ended.

They are made of the history, behind everybody else; where nobody wants any, nothing of
this is there. A job learns of its span before it begins, in its environment.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors import __version__
from forge_actors.domain.spans import About, Attempts, Begun, span_of
from forge_actors.domain.tracing import VARIABLE, own_span, parse_trace
from forge_actors.edges.spans import SpanWriter, exporter_named
from forge_actors.edges.sqlite.rows import spec_from

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.jobs import Job
    from forge_actors.domain.launch import LaunchOrder
    from forge_actors.domain.tracing import TraceParent
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.telemetry_settings import TelemetrySettings

#: Seconds in which what comes is told together.
GATHER_SECONDS = 0.5
#: Events that are read before others get their turn.
READ_TOGETHER = 2000
#: Seconds for the last ones, when the runtime ends.
CLOSE_SECONDS = 3.0


class Tracing:
    """Made before anything runs; `run` follows what does."""

    def __init__(self, store: SqliteStore, writer: SpanWriter) -> None:
        self._store = store
        self._writer = writer
        self._seen: int = store.committed.value
        rows = store.read("begun", json.dumps(store.tally.reserved))
        self._attempts = Attempts(
            {
                job: Begun(attempt, dispatched, running=running)
                for job, attempt, dispatched, running in rows
            }
        )

    def orders(
        self, make: Callable[[Job], LaunchOrder]
    ) -> Callable[[Job], LaunchOrder]:
        """The same orders, with the span of the attempt in their environment."""

        def made(job: Job) -> LaunchOrder:
            order = make(job)
            parent = parse_trace(order.env.get(VARIABLE))
            own = str(own_span(job.id, job.attempt, parent))
            return structs.replace(order, env={**order.env, VARIABLE: own})

        return made

    async def run(self) -> None:
        """Tell what ends, until cancelled; then what is left, for a moment."""
        try:
            while True:
                await self._store.committed.wait_value(lambda last: last > self._seen)
                await trio.sleep(GATHER_SECONDS)
                await self._tell()
        finally:
            with trio.move_on_after(CLOSE_SECONDS) as scope:
                scope.shield = True
                await self._tell()
                await trio.to_thread.run_sync(
                    self._writer.close, abandon_on_cancel=True
                )

    async def _tell(self) -> None:
        last: int = self._store.committed.value
        while self._seen < last:
            upto = min(last, self._seen + READ_TOGETHER)
            ended = self._attempts.add(self._store.find_events(self._seen, upto, {}))
            self._seen = upto
            about = self._about([one.job for one in ended])
            for one in ended:
                if one.job in about:
                    self._writer.write(span_of(one, about[one.job]))
            if spans := self._writer.take():
                await trio.to_thread.run_sync(
                    self._writer.export, spans, abandon_on_cancel=True
                )
            await trio.lowlevel.checkpoint()

    def _about(self, jobs: list[str]) -> dict[str, About]:
        rows = self._store.read("job_told", json.dumps(jobs)) if jobs else []
        return {
            job: About(kind, name, accepted, _parent(spec))
            for job, kind, name, accepted, spec in rows
        }


def _parent(spec: bytes) -> TraceParent | None:
    return parse_trace(spec_from((spec,)).env.get(VARIABLE))


def open_tracing(store: SqliteStore, settings: TelemetrySettings) -> Tracing | None:
    """What tells of this runtime, if somebody wants to be told.

    Raises:
        Refused: what was asked for is installed and cannot be used.
    """
    name = settings.exporter(os.environ)
    exporter = None if name is None else exporter_named(name)
    if exporter is None:
        return None
    return Tracing(store, SpanWriter(exporter, version=__version__))
