"""Control, the part that is about schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.schedule_views import (
        AppliedSchedules,
        NextTime,
        OccurrenceView,
        ScheduleRequest,
        ScheduleView,
    )


class Schedules(Protocol):
    """Every method that names a schedule may raise NotFound."""

    async def schedules(self) -> list[ScheduleView]:
        """All of them, by name."""

    async def schedule(self, name: str) -> ScheduleView: ...

    async def add_schedule(self, request: ScheduleRequest) -> ScheduleView:
        """Add one.

        Raises:
            InvalidInput: naming the field. Refused: the name is taken.
        """

    async def edit_schedule(
        self, request: ScheduleRequest, revision: int | None = None
    ) -> ScheduleView:
        """Have one be as a request says, and come as often as before.

        Raises:
            Refused: it has another revision than was named.
        """

    async def pause_schedule(self, name: str) -> ScheduleView:
        """Let none of its windows run until `resume_schedule`; they are gone then."""

    async def resume_schedule(self, name: str) -> ScheduleView: ...

    async def remove_schedule(self, name: str) -> ScheduleView:
        """Its jobs stay as they are."""

    async def run_schedule(
        self, name: str, request_id: str | None = None
    ) -> OccurrenceView:
        """Have it run now, once for each request id.

        Raises:
            Refused: a job of it has not ended, and its policy is to skip then.
        """

    async def next_times(self, name: str, count: int) -> list[NextTime]:
        """The times at which it comes next."""

    async def occurrences(self, name: str, limit: int = 50) -> list[OccurrenceView]:
        """What became of its windows, newest first."""

    async def apply_schedules(
        self,
        requests: Sequence[ScheduleRequest],
        source: str,
        *,
        dry_run: bool = False,
    ) -> AppliedSchedules:
        """Have the schedules of a file be as it says, all of them or none: those of
        another file, and those of no file, stay as they are.

        Raises:
            InvalidInput: one is wrong. Refused: a name is taken, or somebody changed
                one meanwhile; then nothing is changed.
        """
