"""A `Control` without a runtime: jobs begin and end when the test says so.

For tests of entry points and of programs that talk to a service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio

from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import ACTIVE, KINDS, TERMINAL, JobError, JobView, State
from forge_actors.domain.repositories import RepositoryView
from forge_actors.domain.requests import (
    Accepted,
    Explanation,
    JobQuery,
    JobRequest,
    LogChunk,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.ports import Control
    from forge_actors.domain.settings import SettingChange, SettingView

STARTED = "2026-01-02T03:04:05Z"
SHORTEST_SELECTOR = 4


class FakeControl:
    """Holds everything in memory; `end`, `write` and `emit` are for the test."""

    def __init__(self) -> None:
        self.repos: dict[str, RepositoryView] = {}
        self.views: dict[str, JobView] = {}
        self.requests: dict[str, JobRequest] = {}
        self.output: dict[tuple[str, str], bytes] = {}
        #: Where bytes are missing: (job, stream) to (first, end).
        self.gaps: dict[tuple[str, str], tuple[int, int]] = {}
        self.log: list[Event] = []
        self.setting_views: list[SettingView] = []
        #: What the next reload finds changed.
        self.setting_changes: list[SettingChange] = []
        self.stop_requested = trio.Event()
        #: Requests that are held right now.
        self.held = 0
        #: Raised by the next call of any kind.
        self.failure: Exception | None = None
        self._changed = trio.Event()

    # What a test does

    def end(
        self, job: str, state: State = "succeeded", *, exit_code: int | None = 0
    ) -> None:
        error = None
        if state != "succeeded":
            error = JobError("EXIT_NONZERO", f"it ended with {exit_code}")
        self.views[job] = msgspec.structs.replace(
            self.views[job],
            state=state,
            exit_code=exit_code,
            error=error,
            waiting=None,
            started_at=STARTED,
            finished_at=STARTED,
        )
        self._wake()

    def write(self, job: str, data: bytes, *, stream: str = "stdout") -> None:
        self.output[job, stream] = self.output.get((job, stream), b"") + data
        self._wake()

    def emit(self, kind: str, *, job: str | None = None) -> None:
        self.log.append(Event(kind, at=0.0, job=job, seq=len(self.log) + 1))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _change(self) -> None:
        self.held += 1
        try:
            await self._changed.wait()
        finally:
            self.held -= 1

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

    # What entry points ask

    async def status(self) -> dict[str, object]:
        await self._begin()
        active = [view for view in self.views.values() if view.state in ACTIVE]
        return {
            "service": {
                "pid": 0,
                "version": "0",
                "started_at": STARTED,
                "home": "/home",
            },
            "ready": True,
            "readiness": {},
            "degraded": [],
            "capacity": {"workers": {"used": 0, "limit": 4}},
            "providers": {},
            "counts": {"active": len(active)},
            "pressure": {},
        }

    async def add_repository(
        self, path: str, name: str | None = None
    ) -> RepositoryView:
        await self._begin()
        if not path.startswith("/"):
            raise InvalidInput("path", f"{path!r} is not absolute")
        name = name or path.rsplit("/", 1)[-1]
        view = RepositoryView(f"r-{name}", name, path, True, 0, 0, STARTED)
        self.repos[name] = view
        return view

    async def repositories(self) -> list[RepositoryView]:
        await self._begin()
        return list(self.repos.values())

    async def repository(self, name: str) -> RepositoryView:
        await self._begin()
        if name not in self.repos:
            raise NotFound(f"there is no repository {name!r}")
        return self.repos[name]

    async def enable_repository(self, name: str, *, enabled: bool) -> RepositoryView:
        repository = await self.repository(name)
        changed = msgspec.structs.replace(repository, enabled=enabled)
        self.repos[name] = changed
        return changed

    async def remove_repository(
        self, name: str, *, cancel: bool = False
    ) -> RepositoryView:
        view = await self.repository(name)
        jobs = [job for job in self.views.values() if job.repo == name]
        active = [job for job in jobs if job.state in ACTIVE]
        if active and not cancel:
            raise Refused(f"{name} has {len(active)} active jobs")
        for job in active:
            self.end(job.id, "cancelled", exit_code=None)
        del self.repos[name]
        return view

    async def submit(self, requests: Sequence[JobRequest]) -> list[Accepted]:
        await self._begin()
        for index, request in enumerate(requests):
            if request.kind not in KINDS:
                raise InvalidInput(
                    f"jobs[{index}].kind", f"{request.kind!r} is unknown", allowed=KINDS
                )
        return [self._accept(request) for request in requests]

    def _accept(self, request: JobRequest) -> Accepted:
        for job, known in self.requests.items():
            if request.request_id and known.request_id == request.request_id:
                return Accepted(job, existing=True)
        job = f"j{len(self.views) + 1:06d}"
        self.requests[job] = request
        self.views[job] = _view(job, request)
        self._wake()
        return Accepted(job)

    async def jobs(self, query: JobQuery) -> list[JobView]:
        await self._begin()
        views = [
            view
            for view in reversed(self.views.values())
            if (not query.repo or view.repo in query.repo)
            and (not query.state or view.state in query.state)
            and (not query.kind or view.kind in query.kind)
            and (not query.label or set(view.labels) & set(query.label))
            and (not query.active or view.state in ACTIVE)
            and (query.before is None or view.id < query.before)
        ]
        return views[: query.limit]

    async def job(self, selector: str) -> JobView:
        await self._begin()
        return self._find(selector)

    async def why(self, selector: str) -> Explanation:
        view = await self.job(selector)
        return Explanation(view.id, view.state, "It waits its turn.", view.waiting)

    async def cancel(self, selector: str, *, grace: float | None = None) -> JobView:
        view = await self.job(selector)
        if view.state in TERMINAL:
            raise Refused(f"job {view.id} has ended")
        self.end(view.id, "cancelled", exit_code=None)
        return self.views[view.id]

    async def wait(self, selectors: Sequence[str]) -> list[JobView]:
        await self._begin()
        jobs = [self._find(selector).id for selector in selectors]
        while any(self.views[job].state not in TERMINAL for job in jobs):
            await self._change()
        return [self.views[job] for job in jobs]

    async def read_log(
        self,
        selector: str,
        stream: str,
        offset: int,
        *,
        limit: int,
        wait: bool = False,
    ) -> LogChunk:
        await self._begin()
        job = self._find(selector).id
        while True:
            whole = self.output.get((job, stream), b"")
            start = max(0, len(whole) + offset) if offset < 0 else offset
            first, end = self.gaps.get((job, stream), (0, 0))
            missing = max(0, end - start) if start >= first else 0
            start += missing
            stop = first if start < first else len(whole)
            data = whole[start : min(stop, start + limit)]
            over = self.views[job].state in TERMINAL
            ended = over and start + len(data) >= len(whole)
            if data or missing or ended or not wait:
                return LogChunk(start, data, missing, ended)
            await self._change()

    async def wait_output(self, selector: str, known: int) -> None:
        await self._begin()
        job = self._find(selector).id
        while (
            sum(len(self.output.get((job, name), b"")) for name in ("stdout", "stderr"))
            <= known
            and self.views[job].state not in TERMINAL
        ):
            await self._change()

    async def events(self, after: int, *, limit: int, wait: bool) -> list[Event]:
        await self._begin()
        while not (found := [event for event in self.log if event.seq > after]):
            if not wait:
                break
            await self._change()
        return found[:limit]

    async def settings(self) -> list[SettingView]:
        await self._begin()
        return self.setting_views

    async def reload_settings(self) -> list[SettingChange]:
        await self._begin()
        changes, self.setting_changes = self.setting_changes, []
        return changes

    def request_stop(self) -> None:
        self.stop_requested.set()


def _view(job: str, request: JobRequest) -> JobView:
    return JobView(
        id=job,
        state="queued",
        kind=request.kind,  # type: ignore[arg-type]  # checked by `submit`
        repo=request.repo,
        name=request.name,
        argv=request.argv,
        priority=request.priority,
        attempt=0,
        max_attempts=request.max_attempts or 1,
        exit_code=None,
        signal=None,
        forced=False,
        error=None,
        waiting={"kind": "token", "since": STARTED, "holders": []},
        claims=request.claims,
        after=request.after,
        provider=request.provider,
        replay=request.replay or "never",
        retry_of=None,
        labels=request.labels,
        created_at=STARTED,
        queued_at=STARTED,
        started_at=None,
        finished_at=None,
    )


if TYPE_CHECKING:
    _is_a_control: Control = FakeControl()
