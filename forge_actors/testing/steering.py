"""The part of the fake control that steers jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import msgspec

from forge_actors.domain.errors import InvalidInput, NotFound, Outdated, Refused
from forge_actors.domain.jobs import RESERVED, TERMINAL, WAITING, JobView
from forge_actors.domain.pauses import PauseView
from forge_actors.domain.quarantine import nothing_kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.repositories import RepositoryView
    from forge_actors.domain.requests import JobEdit
    from forge_actors.domain.steering import Steering

PAUSED_SINCE = "2026-01-02T03:04:05Z"


class FakeSteering(ABC):
    """Holds, pauses and edits what `FakeControl` holds in memory."""

    repos: dict[str, RepositoryView]
    views: dict[str, JobView]
    pauses: dict[str, PauseView]
    kept: dict[str, dict[str, object]]

    @abstractmethod
    async def job(self, selector: str) -> JobView: ...

    @abstractmethod
    async def _begin(self) -> None: ...

    async def hold(self, selector: str) -> JobView:
        return await self._steer(selector, "hold")

    async def unhold(self, selector: str) -> JobView:
        return await self._steer(selector, "unhold")

    async def pause_job(self, selector: str) -> JobView:
        return await self._steer(selector, "pause")

    async def resume_job(self, selector: str) -> JobView:
        return await self._steer(selector, "resume")

    async def steer_all(self, selectors: Sequence[str], how: Steering) -> list[JobView]:
        before = dict(self.views)
        try:
            return [await self._steer(selector, how) for selector in selectors]
        except (NotFound, Refused):
            self.views.update(before)
            raise

    async def _steer(self, selector: str, how: Steering) -> JobView:
        view = await self.job(selector)
        if view.state in TERMINAL:
            raise Refused(f"job {view.id} has ended: too late to {how} it")
        runs = view.state in RESERVED
        if runs and how in ("hold", "unhold"):
            raise Refused(f"job {view.id} runs: {how} is for jobs that wait")
        on = how in ("hold", "pause")
        if runs:
            changed = msgspec.structs.replace(view, paused=on)
        else:
            waiting = {**(view.waiting or {}), "kind": "pause" if on else "token"}
            changed = msgspec.structs.replace(view, waiting=waiting)
        self.views[view.id] = changed
        return changed

    async def job_mark(self, selector: str) -> str:
        return repr(await self.job(selector))

    async def edit(
        self, selector: str, edit: JobEdit, *, mark: str | None = None
    ) -> JobView:
        view = await self.job(selector)
        if mark is not None and mark != repr(view):
            raise Outdated(f"job {view.id}")
        if view.state not in WAITING:
            raise Refused(f"job {view.id} runs: only a job that waits can be edited")
        given = {"priority": edit.priority, "labels": edit.labels}
        given["claims"] = edit.claims
        changes = {name: value for name, value in given.items() if value is not None}
        self.views[view.id] = msgspec.structs.replace(view, **changes)
        return self.views[view.id]

    async def quarantined(self) -> list[dict[str, object]]:
        await self._begin()
        return list(self.kept.values())

    async def release_quarantine(self, selector: str) -> dict[str, object]:
        view = await self.job(selector)
        if view.id not in self.kept:
            raise nothing_kept(view.id)
        return self.kept.pop(view.id)

    async def pause(self, scope: str, *, jobs: bool = False) -> list[PauseView]:
        await self._begin()
        self._check_scope(scope)
        self.pauses.setdefault(scope, PauseView(scope, PAUSED_SINCE, jobs))
        return list(self.pauses.values())

    async def resume(self, scope: str, *, jobs: bool = False) -> list[PauseView]:
        await self._begin()
        self._check_scope(scope)
        self.pauses.pop(scope, None)
        return list(self.pauses.values())

    def _check_scope(self, scope: str) -> None:
        name = scope.partition(":")[2]
        if scope.startswith("repo:") and name not in self.repos:
            known = tuple(self.repos)
            raise InvalidInput("repo", f"{name!r} is unknown", allowed=known)
        if scope != "all" and not scope.startswith(("repo:", "provider:")):
            raise InvalidInput("scope", f"{scope!r} is no scope")
