"""A `Control` without a runtime: jobs begin and end when the test says so.

For tests of entry points and of programs that talk to a service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.holding import Holder, Holding, holding
from forge_actors.domain.idempotency import check_whole, keyed
from forge_actors.domain.jobs import (
    ACTIVE,
    KINDS,
    RESERVED,
    TERMINAL,
    JobError,
    JobView,
    State,
)
from forge_actors.domain.pauses import PauseView
from forge_actors.domain.repositories import RepositoryDetails, RepositoryView
from forge_actors.domain.requests import (
    Accepted,
    Continued,
    Explanation,
    JobQuery,
    JobRequest,
    Retried,
    refuse_work,
)
from forge_actors.domain.selection import (
    BLOCKED,
    FAILED,
    MAX_SELECTED,
    check_selection,
)
from forge_actors.testing.artifacts import FakeArtifacts
from forge_actors.testing.controllers import FakeControllers
from forge_actors.testing.epics import FakeEpics
from forge_actors.testing.inbox import FakeInbox
from forge_actors.testing.kept_worktrees import FakeWorktrees
from forge_actors.testing.metrics import FakeMetrics
from forge_actors.testing.policies import FakePolicies
from forge_actors.testing.results import FakeResults
from forge_actors.testing.spending import FakeSpending
from forge_actors.testing.steering import FakeSteering
from forge_actors.testing.timeline import FakeTimeline
from forge_actors.testing.trusting import FakeTrust
from forge_actors.testing.watching import STARTED, FakeWatching
from forge_actors.testing.webhooks import FakeWebhooks
from forge_actors.testing.workflows import FakeWorkflows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.control import Control
    from forge_actors.domain.selection import JobFilter, Selection
    from forge_actors.domain.settings import SettingChange, SettingView


class FakeControl(
    FakeWatching,
    FakeSteering,
    FakeArtifacts,
    FakeWorktrees,
    FakeResults,
    FakeWorkflows,
    FakeControllers,
    FakeEpics,
    FakeSpending,
    FakeInbox,
    FakeMetrics,
    FakePolicies,
    FakeTimeline,
    FakeWebhooks,
    FakeTrust,
):
    """Holds everything in memory; `end`, `write` and `emit` are for the test."""

    def __init__(self) -> None:
        for part in FakeControl.__bases__:
            part.__init__(self)  # type: ignore[misc]  # there are no others
        self.repos: dict[str, RepositoryView] = {}
        self.requests: dict[str, JobRequest] = {}
        self.setting_views: list[SettingView] = []
        #: What the next reload finds changed.
        self.setting_changes: list[SettingChange] = []
        self.pauses: dict[str, PauseView] = {}
        #: What is kept for the jobs with these ids.
        self.kept: dict[str, dict[str, object]] = {}

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
            "ready": self.ready,
            "readiness": {},
            "degraded": [],
            "draining": self.draining,
            "policy": msgspec.to_builtins(await self.policy()),
            "capacity": {"workers": {"used": 0, "limit": 4}},
            "providers": {
                "codex": {"used": 0, "limit": 3, "jobs": [], "state": "open"}
            },
            "counts": {"active": len(active)},
            "pressure": {},
            "quarantined": list(self.kept.values()),
            "pauses": [msgspec.to_builtins(p) for p in self.pauses.values()],
            "mcp": {"available": False, "note": "it is none that runs"},
        }

    async def add_repository(
        self, path: str, name: str | None = None
    ) -> RepositoryView:
        await self._begin()
        name = name or path.rsplit("/", 1)[-1]
        view = RepositoryView(f"r-{name}", name, path, True, 0, 0, STARTED)
        self.repos[name] = view
        return view

    async def repositories(self) -> list[RepositoryView]:
        await self._begin()
        return list(self.repos.values())

    async def repository(self, name: str) -> RepositoryDetails:
        view = await self._repository(name)
        states = [job.state for job in self.views.values() if job.repo == view.name]
        running = [
            job.id
            for job in self.views.values()
            if job.repo == view.name and job.state in RESERVED
        ]
        return RepositoryDetails(
            **msgspec.structs.asdict(view),
            common_dir=f"{view.path}/.git",
            fence=len(states),
            last_dispatch=STARTED if states else None,
            counts={state: states.count(state) for state in sorted(set(states))},
            running_jobs=running,
        )

    async def _repository(self, name: str) -> RepositoryView:
        await self._begin()
        if name not in self.repos:
            raise NotFound(f"there is no repository {name!r}")
        return self.repos[name]

    async def enable_repository(self, name: str, *, enabled: bool) -> RepositoryView:
        repository = await self._repository(name)
        changed = msgspec.structs.replace(repository, enabled=enabled)
        self.repos[name] = changed
        return changed

    async def relocate_repository(self, name: str, path: str) -> RepositoryView:
        view = await self._repository(name)
        moved = msgspec.structs.replace(view, path=path)
        self.repos[name] = moved
        return msgspec.structs.replace(
            moved, note=f"it was moved here from {view.path}"
        )

    async def remove_repository(
        self, name: str, *, cancel: bool = False
    ) -> RepositoryView:
        view = await self._repository(name)
        jobs = [job for job in self.views.values() if job.repo == name]
        active = [job for job in jobs if job.state in ACTIVE]
        if active and not cancel:
            raise Refused(f"{name} has {len(active)} active jobs")
        for job in active:
            self.end(job.id, "cancelled", exit_code=None)
        del self.repos[name]
        return view

    async def submit(
        self, requests: Sequence[JobRequest], *, key: str | None = None
    ) -> list[Accepted]:
        await self._begin()
        if key is not None:
            keyed(requests, key)
            ids = {known.request_id for known in self.requests.values()}
            check_whole(requests, key, ids.__contains__)
        refuse_work(requests)
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
            for view in self._newest(query)
            if query.before is None or view.id < query.before
        ]
        return views[: query.limit]

    async def select(self, selection: Selection) -> list[str]:
        await self._begin()
        check_selection(selection)
        named = {self._find(selector).id for selector in selection.jobs}
        retried = {view.retry_of for view in self.views.values()}
        found = [
            view.id
            for view in self._newest(selection)
            if (not named or view.id in named)
            and (not selection.unretried or view.id not in retried)
        ]
        if len(found) > MAX_SELECTED:
            raise Refused(f"more than {MAX_SELECTED} jobs are selected")
        return found

    def _newest(self, wanted: JobFilter) -> list[JobView]:
        return [
            view
            for view in reversed(self.views.values())
            if (not wanted.repo or view.repo in wanted.repo)
            and (not wanted.state or view.state in wanted.state)
            and (not wanted.kind or view.kind in wanted.kind)
            and (not wanted.origin or view.origin in wanted.origin)
            and (not wanted.work or view.work in wanted.work)
            and set(wanted.label) <= set(view.labels)
            and (not wanted.failed or _failed(view))
            and (not wanted.active or view.state in ACTIVE)
        ]

    async def job(self, selector: str) -> JobView:
        await self._begin()
        return self._find(selector)

    async def jobs_named(self, selectors: Sequence[str]) -> list[JobView]:
        await self._begin()
        return [self._find(selector) for selector in selectors]

    async def why(self, selector: str) -> Explanation:
        view = await self.job(selector)
        return Explanation(view.id, view.state, "It waits its turn.", view.waiting)

    async def check_fence(self, job: str, attempt: int, fence: int) -> Holding:
        view = self.views.get(job)
        found = None
        if view is not None:
            found = Holder(view.state, view.attempt, view.fence)
        return holding(job, attempt, fence, found)

    async def cancel(self, selector: str, *, grace: float | None = None) -> JobView:
        view = await self.job(selector)
        if view.state in TERMINAL:
            raise Refused(f"job {view.id} has ended")
        self.end(view.id, "cancelled", exit_code=None)
        return self.views[view.id]

    async def cancel_all(
        self, selectors: Sequence[str], *, grace: float | None = None
    ) -> list[JobView]:
        for view in await self.jobs_named(selectors):
            if view.state not in TERMINAL:
                self.end(view.id, "cancelled", exit_code=None)
        return await self.jobs_named(selectors)

    async def retry(
        self,
        selectors: Sequence[str],
        *,
        origin: str = "cli",
        resume: bool = False,
        authorise: Sequence[str] = (),
        how: str = "program",
    ) -> list[Retried]:
        await self._begin()
        olds = [self._find(selector) for selector in selectors]
        for old in olds:
            if old.state not in TERMINAL:
                raise Refused(f"job {old.id} has not ended, it is {old.state}")
        made: dict[str, Retried] = {}
        for old in sorted(olds, key=lambda view: view.id):
            after = [made[job].id if job in made else job for job in old.after]
            fields = {"after": after, "origin": origin, "request_id": None}
            request = msgspec.structs.replace(self.requests[old.id], **fields)
            new = self._accept(request).id
            self.views[new] = msgspec.structs.replace(self.views[new], retry_of=old.id)
            made[old.id] = Retried(new, old.id)
        return [made[old.id] for old in olds]

    async def continue_job(
        self, selector: str, prompt: str, *, origin: str = "cli"
    ) -> Continued:
        old = await self.job(selector)
        if old.state not in TERMINAL:
            raise Refused(f"job {old.id} has not ended, it is {old.state}")
        if self.requests[old.id].agent is None:
            raise Refused(f"job {old.id} has no agent")
        fields = {"prompt": prompt, "origin": origin, "request_id": None}
        request = msgspec.structs.replace(self.requests[old.id], **fields)
        return Continued(self._accept(request).id, old.id)

    async def wait(self, selectors: Sequence[str]) -> list[JobView]:
        await self._begin()
        jobs = [self._find(selector).id for selector in selectors]
        while any(self.views[job].state not in TERMINAL for job in jobs):
            await self._change()
        return [self.views[job] for job in jobs]

    async def settings(self) -> list[SettingView]:
        await self._begin()
        return self.setting_views

    async def reload_settings(self) -> list[SettingChange]:
        await self._begin()
        changes, self.setting_changes = self.setting_changes, []
        return changes


def _failed(view: JobView) -> bool:
    blocked = view.error is not None and view.error.code == BLOCKED
    return view.state in FAILED or blocked


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
        origin=request.origin,
        work=request.work,
    )


if TYPE_CHECKING:
    _is_a_control: Control = FakeControl()
