"""Changes of schedules, and of what became of their windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from forge_actors.domain.events import Event
    from forge_actors.domain.schedules import Occurrence


class ScheduleSaved(Struct, frozen=True):
    """All that is known of a schedule now. What it says of time is the wall clock's, so
    it is encoded already."""

    schedule: str
    name: str
    body: bytes
    event: Event | None = None


class OccurrenceSaved(Struct, frozen=True):
    """What became of a window of a schedule, until now or for good."""

    occurrence: Occurrence
    event: Event | None = None


class ScheduleRemoved(Struct, frozen=True):
    schedule: str
    event: Event


ScheduleChange = ScheduleSaved | OccurrenceSaved | ScheduleRemoved
