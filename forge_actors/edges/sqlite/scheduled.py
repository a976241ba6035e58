"""Schedules as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import structs

from forge_actors.domain.schedule_changes import (
    OccurrenceSaved,
    ScheduleRemoved,
    ScheduleSaved,
)
from forge_actors.domain.schedules import MAX_OCCURRENCES

if TYPE_CHECKING:
    from collections.abc import Callable

    import apsw


Queries = dict[str, str]


def save_schedule(db: apsw.Connection, sql: Queries, change: ScheduleSaved) -> None:
    db.execute(sql["save_schedule"], (change.schedule, change.name, change.body))


def save_occurrence(db: apsw.Connection, sql: Queries, change: OccurrenceSaved) -> None:
    occurrence = change.occurrence
    db.execute(sql["save_occurrence"], structs.astuple(occurrence))
    db.execute(sql["trim_occurrences"], (occurrence.schedule, MAX_OCCURRENCES))


def remove_schedule(db: apsw.Connection, sql: Queries, change: ScheduleRemoved) -> None:
    db.execute(sql["remove_schedule"], (change.schedule,))
    db.execute(sql["remove_occurrences"], (change.schedule,))


WRITERS: dict[type, Callable[[apsw.Connection, Queries, Any], None]] = {
    ScheduleSaved: save_schedule,
    OccurrenceSaved: save_occurrence,
    ScheduleRemoved: remove_schedule,
}
