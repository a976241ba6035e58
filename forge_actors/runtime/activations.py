"""Activations: schedules in shadow that go live with this start.

Each mark is heeded once, before anything is decided about a schedule. One that cannot
be heeded stays for the next start.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct, structs

from forge_actors.domain.changes import Noted
from forge_actors.domain.errors import ForgeError
from forge_actors.domain.events import Event
from forge_actors.domain.schedule_changes import ScheduleSaved
from forge_actors.domain.schedule_records import encoded, loaded, schedule_event
from forge_actors.runtime.homes import ACTIVATIONS

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.ports import Clock
    from forge_actors.domain.schedules import Schedule
    from forge_actors.edges.sqlite.store import SqliteStore

log = logging.getLogger(__name__)

Result = Literal["activated", "already_active", "cancelled", "failed"]

#: Marks that one start heeds, and bytes of one.
MAX_MARKS = 1000
MAX_MARK = 4096


class _Mark(Struct, forbid_unknown_fields=True):
    schedule: str


async def consume(home: Path, store: SqliteStore, clock: Clock) -> dict[str, Result]:
    """Heed the marks of a home; what became of each, by the name of its file."""
    folder = home / ACTIVATIONS
    try:
        paths = sorted(folder.glob("*.json"))[:MAX_MARKS]
    except OSError:
        log.exception("the marks in %s cannot be read", folder)
        return {}
    return {path.name: await _heed(path, store, clock) for path in paths}


async def _heed(path: Path, store: SqliteStore, clock: Clock) -> Result:
    try:
        if path.is_symlink() or path.stat().st_size > MAX_MARK:
            raise ValueError("it is no mark of ours")
        name = msgspec.json.decode(path.read_bytes(), type=_Mark).schedule
        result, why = await _activate(name, store, clock)
        if result != "activated":
            told: dict[str, object] = {
                "schedule": name,
                "result": result,
                "reason": why,
            }
            await store.save([Noted(_event(clock, told))]).wait()
        path.unlink()
    except (
        OSError,
        ValueError,
        msgspec.MsgspecError,
        ForgeError,
        RecursionError,
    ) as error:
        log.warning("the mark %s stays for the next start: %s", path, error)
        return "failed"
    return result


async def _activate(name: str, store: SqliteStore, clock: Clock) -> tuple[Result, str]:
    found = [loaded(*row) for row in store.schedules() if row[1] == name]
    if not found:
        return "cancelled", "there is no such schedule"
    schedule, problem = found[0]
    if problem is not None or schedule.definition.wake is None:
        return "cancelled", problem or "it wakes no controller"
    if schedule.state != "active":
        return "cancelled", f"it is {schedule.state}"
    if not schedule.definition.policies.shadow:
        return "already_active", "it is live already"
    live = _live(schedule)
    event = schedule_event(
        "schedule_activated", live, clock.now(), {"result": "activated"}
    )
    change = ScheduleSaved(live.id, live.name, encoded(live), event)
    await store.save([change]).wait()
    return "activated", ""


def _live(schedule: Schedule) -> Schedule:
    policies = structs.replace(schedule.definition.policies, shadow=False)
    definition = structs.replace(schedule.definition, policies=policies)
    revision = schedule.revision + 1
    return structs.replace(schedule, definition=definition, revision=revision)


def _event(clock: Clock, told: dict[str, object]) -> Event:
    return Event("schedule_not_activated", clock.now(), data=told)
