"""The part of the client that is about schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.client.worktrees import WorktreeCalls
from forge_actors.domain.requests import convert
from forge_actors.domain.schedule_views import (
    AppliedSchedules,
    NextTime,
    OccurrenceView,
    ScheduleView,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class ScheduleCalls(WorktreeCalls):
    """A schedule is named by its name; what makes one is as `ScheduleRequest`."""

    async def schedules(self) -> list[ScheduleView]:
        """All of them, by name."""
        answer = await self._call("GET", "schedules")
        return convert(answer["schedules"], list[ScheduleView])

    async def schedule(self, name: str) -> ScheduleView:
        return convert(await self._call("GET", "schedules", name), ScheduleView)

    async def add_schedule(self, /, **schedule: Any) -> ScheduleView:
        """Add one: `name`, `repo`, `job`, one of `every`, `cron`, `at` and `manual`,
        and its policies."""
        answer = await self._call("POST", "schedules", body=schedule)
        return convert(answer, ScheduleView)

    async def edit_schedule(
        self, /, *, revision: int | None = None, **schedule: Any
    ) -> ScheduleView:
        """Have one be as this says, if it still has that revision."""
        body = {"schedule": schedule, "revision": revision}
        name = str(schedule["name"])
        answer = await self._call("POST", "schedules", name, "edit", body=body)
        return convert(answer, ScheduleView)

    async def pause_schedule(self, name: str) -> ScheduleView:
        answer = await self._call("POST", "schedules", name, "pause")
        return convert(answer, ScheduleView)

    async def resume_schedule(self, name: str) -> ScheduleView:
        answer = await self._call("POST", "schedules", name, "resume")
        return convert(answer, ScheduleView)

    async def remove_schedule(self, name: str) -> ScheduleView:
        """Forget it; its jobs stay."""
        return convert(await self._call("DELETE", "schedules", name), ScheduleView)

    async def run_schedule(
        self, name: str, request_id: str | None = None
    ) -> OccurrenceView:
        """Have it run now, once for each request id."""
        body = {"request_id": request_id}
        answer = await self._call("POST", "schedules", name, "run", body=body)
        return convert(answer, OccurrenceView)

    async def next_times(self, name: str, count: int = 10) -> list[NextTime]:
        query = [("count", count)]
        answer = await self._call("GET", "schedules", name, "next", query=query)
        return convert(answer["times"], list[NextTime])

    async def occurrences(self, name: str, limit: int = 50) -> list[OccurrenceView]:
        """What became of its times, newest first."""
        query = [("limit", limit)]
        path = ("schedules", name, "occurrences")
        answer = await self._call("GET", *path, query=query)
        return convert(answer["occurrences"], list[OccurrenceView])

    async def apply_schedules(
        self,
        schedules: Sequence[dict[str, Any]],
        source: str,
        *,
        dry_run: bool = False,
    ) -> AppliedSchedules:
        """Have the schedules of a file, which `source` names, be these."""
        body = {"source": source, "schedules": list(schedules), "dry_run": dry_run}
        answer = await self._call("POST", "schedules", "apply", body=body)
        return convert(answer, AppliedSchedules)
