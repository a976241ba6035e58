"""Control: everything a caller can ask of a runtime, answered by actors and store."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import trio
from msgspec import structs
from trio_util import wait_any

from forge_actors import __version__
from forge_actors.actors import supervisor
from forge_actors.actors.repository import Cancel, Explain, SetEnabled, Waits
from forge_actors.domain.errors import (
    InvalidInput,
    MailboxClosed,
    NotFound,
)
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import RESERVED, STATES, TERMINAL, WAITING, JobView
from forge_actors.domain.repositories import Repository, RepositoryView
from forge_actors.domain.requests import Accepted, Explanation, JobQuery, LogChunk
from forge_actors.edges.node import logs
from forge_actors.runtime.endings import Endings
from forge_actors.runtime.groups import only_failure
from forge_actors.runtime.orders import log_base
from forge_actors.runtime.views import (
    list_rows,
    roots_of,
    sentence,
    shown_event,
    timestamp,
    view,
    waiting_view,
    with_waiting,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any

    from forge_actors.actors.mailbox import Mailbox
    from forge_actors.domain.ports import Clock
    from forge_actors.domain.requests import JobRequest
    from forge_actors.domain.waiting import Waiting
    from forge_actors.edges.node.launcher import NodeLauncher
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.admission import Admission
    from forge_actors.runtime.registry import Registry
    from forge_actors.runtime.settings import Settings

STREAMS: tuple[logs.Stream, ...] = ("stdout", "stderr")


class RuntimeControl:
    """The port `Control` on one runtime."""

    def __init__(
        self,
        *,
        home: Path,
        store: SqliteStore,
        launcher: NodeLauncher,
        clock: Clock,
        settings: Settings,
        registry: Registry,
        admission: Admission,
        mailbox: Mailbox[supervisor.Message],
    ) -> None:
        self._home = home
        self._roots = roots_of(home)
        self._view = partial(view, roots=self._roots)
        self._store = store
        self._launcher = launcher
        self._clock = clock
        self._settings = settings
        self._registry = registry
        self._admission = admission
        self._supervisor = mailbox
        self._started_at = clock.now()
        self._endings = Endings(store)
        #: Set once somebody has asked for an orderly stop.
        self.stop_requested = trio.Event()
        self._closed = trio.Event()

    # -- repositories ----------------------------------------------------------------

    async def add_repository(
        self, path: str, name: str | None = None
    ) -> RepositoryView:
        repo, note = await self._registry.add(path, name)
        return self._repository_view(repo, note=note)

    async def repositories(self) -> list[RepositoryView]:
        counts = self._repository_counts()
        return [
            self._repository_view(repo, counts.get(repo.id, (0, 0)))
            for repo in self._registry.all()
        ]

    async def repository(self, name: str) -> RepositoryView:
        repo, _ = await self._registry.find(name)
        counts = self._repository_counts()
        return self._repository_view(repo, counts.get(repo.id, (0, 0)))

    async def remove_repository(
        self, name: str, *, cancel: bool = False
    ) -> RepositoryView:
        repo, _ = await self._registry.find(name)
        if cancel:
            rows = self._store.read("active_ids", repo.id)
            active = [str(row[0]) for row in rows]
            for job in active:
                await self._cancel(job, repo.id, None)
            await self._endings.wait(active)
        return self._repository_view(await self._registry.remove(repo))

    async def enable_repository(self, name: str, *, enabled: bool) -> RepositoryView:
        repo, _ = await self._registry.find(name)
        changed = await self._registry.enable(repo, enabled)
        # Also an actor without jobs: it may be awake, and remembers what it loaded.
        actor = await self._open(repo.id)
        with suppress(MailboxClosed):
            actor.tell(SetEnabled(enabled))
        counts = self._repository_counts().get(repo.id, (0, 0))
        return self._repository_view(changed, counts)

    def _repository_counts(self) -> dict[str, tuple[int, int]]:
        rows = self._store.read("repository_counts")
        return {repo: (active - running, running) for repo, running, active in rows}

    def _repository_view(
        self,
        repo: Repository,
        counts: tuple[int, int] = (0, 0),
        note: str | None = None,
    ) -> RepositoryView:
        waiting, running = counts
        return RepositoryView(
            id=repo.id,
            name=repo.name,
            path=repo.path,
            enabled=repo.enabled,
            waiting=waiting,
            running=running,
            added_at=timestamp(repo.added_at),
            note=note,
        )

    # -- jobs ------------------------------------------------------------------------

    async def submit(self, requests: Sequence[JobRequest]) -> list[Accepted]:
        return await self._admission.submit(requests)

    async def jobs(self, query: JobQuery) -> list[JobView]:
        repos = [(await self._registry.find(name))[0].id for name in query.repo]
        rows = list_rows(self._store, query, repos)
        waits: dict[str, Waits] = {}
        by_repo: dict[str, list[str]] = {}
        for row in rows:
            if row[1] in WAITING:
                by_repo.setdefault(row[25], []).append(row[0])
        for repo, ids in by_repo.items():
            waits |= await self._explain(repo, ids)
        await self._add_places(waits)
        return [self._merged(self._view(row), waits.get(row[0])) for row in rows]

    async def _add_places(self, waits: dict[str, Waits]) -> None:
        """Where only the supervisor knows what jobs wait for, ask it once for all."""
        asked = {
            job: (entry.offer, None, entry.waiting.since)
            for job, entry in waits.items()
            if entry.offer is not None
            and entry.waiting is not None
            and entry.waiting.resource is None
        }
        if not asked:
            return
        answers: list[Waiting] = await self._supervisor.ask(
            lambda reply: supervisor.Place(tuple(asked.values()), reply)
        )
        for job, waiting in zip(asked, answers, strict=True):
            waits[job] = structs.replace(waits[job], waiting=waiting)

    async def job(self, selector: str) -> JobView:
        return (await self._look(selector))[0]

    async def why(self, selector: str) -> Explanation:
        job, waiting = await self._look(selector)
        return Explanation(
            job=job.id,
            state=job.state,
            sentence=sentence(job, waiting, self._clock.now()),
            waiting=None if waiting is None else waiting_view(waiting),
        )

    async def cancel(self, selector: str, *, grace: float | None = None) -> JobView:
        job_id = self._store.match(selector)
        row = self._row(job_id)
        if row[1] not in TERMINAL:
            await self._cancel(job_id, row[25], grace)
        return await self.job(job_id)

    async def wait(self, selectors: Sequence[str]) -> list[JobView]:
        ids = self._endings.ids(selectors)
        await self._endings.wait(ids)
        rows = self._store.read("view_jobs", json.dumps(ids))
        views = {row[0]: self._view(row) for row in rows}
        return [views[job_id] for job_id in ids]

    async def _cancel(self, job_id: str, repo: str, grace: float | None) -> None:
        while True:
            actor = await self._open(repo)
            try:
                await actor.ask(lambda reply: Cancel(job_id, grace, reply))
            except MailboxClosed:
                continue  # it fell asleep before our message came: wake it
            except NotFound:
                pass  # it ended meanwhile
            return

    async def _look(self, selector: str) -> tuple[JobView, Waiting | None]:
        """A job as it is, with what it waits for, down to the tokens it lacks."""
        job_id = self._store.match(selector)
        row = self._row(job_id)
        job = self._view(row)
        if job.state not in WAITING:
            return job, None
        waits = (await self._explain(row[25], [job_id])).get(job_id)
        if waits is None or waits.waiting is None:
            return self._merged(self._view(self._row(job_id)), waits), None
        waiting, offer = waits.waiting, waits.offer
        if offer is not None and waiting.resource is None:
            since, ahead = waiting.since, waits.ahead
            [waiting] = await self._supervisor.ask(
                lambda reply: supervisor.Place(((offer, ahead, since),), reply)
            )
        return with_waiting(job, waits.state, waiting), waiting

    async def _explain(self, repo: str, ids: Sequence[str]) -> dict[str, Waits]:
        while True:
            actor = await self._open(repo)
            try:
                return await actor.ask(lambda reply: Explain(tuple(ids), reply))
            except MailboxClosed:
                continue  # it fell asleep before our message came: wake it

    async def _open(self, repo: str) -> supervisor.RepositoryMailbox:
        return await self._supervisor.ask(lambda reply: supervisor.Open(repo, reply))

    def _merged(self, job: JobView, waits: Waits | None) -> JobView:
        if waits is None:
            return job
        return with_waiting(job, waits.state, waits.waiting)

    def _row(self, job_id: str) -> tuple[Any, ...]:
        rows = self._store.read("view_job", job_id)
        if not rows:
            raise NotFound(f"no job has the id {job_id!r}")
        return rows[0]

    # -- output and events -----------------------------------------------------------

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
            chunk = logs.read(
                base, which, offset, limit, self._settings.output.stream_bytes
            )
            if chunk.data or chunk.missing or ended or not wait:
                return LogChunk(
                    chunk.offset, chunk.data, chunk.missing, ended and not chunk.data
                )
            await self.wait_output(job_id, sum(logs.size(base, s) for s in STREAMS))

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
    def agent_pid(self) -> int:
        """The process id of the node agent that runs now."""
        return self._launcher.agent_pid

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

    # -- the runtime itself ----------------------------------------------------------

    async def status(self) -> dict[str, object]:
        survey = await self._supervisor.ask(supervisor.Count)
        counts = self._store.counts()
        capacity: dict[str, object] = {}
        providers: dict[str, object] = {}
        for kind, use in survey.tokens.items():
            entry = {"used": use.used, "limit": use.limit, "jobs": list(use.jobs)}
            if kind.startswith("provider:"):
                providers[kind.partition(":")[2]] = {**entry, "state": "open"}
            else:
                capacity[kind] = entry
        capacity["active_repositories"] = {
            "used": survey.active_repositories,
            "limit": self._settings.limits.active_repositories,
        }
        trouble = self._store.trouble
        degraded = [f"the store saves nothing: {trouble}"] if trouble else []
        return {
            "service": {
                "pid": os.getpid(),
                "agent_pid": self.agent_pid,
                "version": __version__,
                "started_at": timestamp(self._started_at),
                "home": str(self._home),
            },
            "ready": not degraded,
            "readiness": {
                "database": "fail" if trouble else "pass",
                "scheduler": "pass",
                # Nothing of this release looks at these two.
                "releaseCoherence": "not_observed",
                "mcpEndToEnd": "not_observed",
            },
            "degraded": degraded,
            "capacity": capacity,
            "providers": providers,
            "counts": {state: counts[state] for state in STATES if counts.get(state)},
            "pressure": {
                "active": survey.pressure is not None,
                "reason": survey.pressure,
            },
            "repositories": {"known": len(self._registry.all()), "awake": survey.awake},
            "store": {"synchronous": "FULL", "last_event": self.last_event},
        }

    def close(self) -> None:
        """The runtime ends: whoever waits for what will not happen learns so."""
        self._closed.set()
        self._endings.close()

    def request_stop(self) -> None:
        self.stop_requested.set()


def _stream(name: str) -> logs.Stream:
    for stream in STREAMS:
        if stream == name:
            return stream
    raise InvalidInput("stream", f"{name!r} is no stream", allowed=STREAMS)
