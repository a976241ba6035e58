"""The part of the fake `Control` that is about schedules: kept, and never due."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from forge_actors.domain.errors import NotFound, Refused
from forge_actors.domain.schedule_views import (
    AppliedSchedules,
    NextTime,
    OccurrenceView,
    ScheduleView,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.schedule_views import ScheduleRequest


class FakeSchedules:
    """Schedules by name in `kept_schedules`; what each was told to run in `ran`.

    `ahead` is set by a test."""

    def __init__(self) -> None:
        self.kept_schedules: dict[str, ScheduleView] = {}
        self.ran: list[tuple[str, str | None]] = []
        #: When each comes next.
        self.ahead: list[NextTime] = []

    async def schedules(self) -> list[ScheduleView]:
        return [self.kept_schedules[name] for name in sorted(self.kept_schedules)]

    async def schedule(self, name: str) -> ScheduleView:
        if name not in self.kept_schedules:
            raise NotFound(f"there is no schedule {name!r}")
        return self.kept_schedules[name]

    async def add_schedule(self, request: ScheduleRequest) -> ScheduleView:
        if request.name in self.kept_schedules:
            raise Refused(f"there is a schedule {request.name!r} already")
        return self._keep(request, 1, None)

    async def edit_schedule(
        self, request: ScheduleRequest, revision: int | None = None
    ) -> ScheduleView:
        known = await self.schedule(request.name)
        if revision not in (None, known.revision):
            raise Refused(f"schedule {request.name!r} was changed meanwhile")
        return self._keep(request, known.revision + 1, None)

    async def pause_schedule(self, name: str) -> ScheduleView:
        known = await self.schedule(name)
        self.kept_schedules[name] = structs.replace(
            known, state="paused", why="it was asked"
        )
        return self.kept_schedules[name]

    async def resume_schedule(self, name: str) -> ScheduleView:
        known = await self.schedule(name)
        self.kept_schedules[name] = structs.replace(known, state="active", why=None)
        return self.kept_schedules[name]

    async def remove_schedule(self, name: str) -> ScheduleView:
        known = await self.schedule(name)
        del self.kept_schedules[name]
        return known

    async def run_schedule(
        self, name: str, request_id: str | None = None
    ) -> OccurrenceView:
        await self.schedule(name)
        self.ran.append((name, request_id))
        moment = "2026-01-01T00:00:00.000Z"
        return OccurrenceView(
            "occ-1", "asked", moment, moment, "due", "somebody asked for it", None, 1
        )

    async def next_times(self, name: str, count: int) -> list[NextTime]:
        await self.schedule(name)
        return self.ahead[:count]

    async def occurrences(self, name: str, limit: int = 50) -> list[OccurrenceView]:
        await self.schedule(name)
        return []

    async def apply_schedules(
        self,
        requests: Sequence[ScheduleRequest],
        source: str,
        *,
        dry_run: bool = False,
    ) -> AppliedSchedules:
        told = AppliedSchedules([], [], [], [])
        for request in requests:
            (
                told.changed if request.name in self.kept_schedules else told.added
            ).append(request.name)
            if not dry_run:
                self._keep(request, 1, source)
        return told

    def _keep(
        self, request: ScheduleRequest, revision: int, source: str | None
    ) -> ScheduleView:
        trigger = f"every {request.every}" if request.every else str(request.cron)
        self.kept_schedules[request.name] = ScheduleView(
            name=request.name,
            repo=request.repo,
            state="active",
            why=None,
            trigger=trigger,
            next=None,
            revision=revision,
            runs=0,
            failures=0,
            jobs=(),
            waiting=(),
            source=source,
            definition=msgspec.to_builtins(request),
        )
        return self.kept_schedules[request.name]
