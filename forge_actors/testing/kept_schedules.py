"""The half of the store in memory that the schedules need, and those who trust them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from forge_actors.domain.causes import Traits
    from forge_actors.domain.events import Event
    from forge_actors.domain.jobs import State
    from forge_actors.domain.schedules import Occurrence
    from forge_actors.testing.rows import Rows


class SchedulesInMemory:
    """The ports `ScheduleStore` and `EndsStore`, but for what every store has."""

    durable: Rows
    _pending: Rows
    #: By repository: who is told of each end in it.
    heard: dict[str, Callable[[], object]]

    def schedules(self) -> list[tuple[str, str, bytes]]:
        return sorted(self._pending.schedules.values(), key=lambda row: row[1])

    def occurrences(self, schedule: str, limit: int) -> list[Occurrence]:
        """What became of the windows of a schedule, newest first."""
        told = [
            one for one in self.durable.occurrences.values() if one.schedule == schedule
        ]
        return sorted(told, key=lambda one: (-one.due, -one.decided))[:limit]

    def job_of_request(self, request_id: str) -> str | None:
        return self._pending.requests.get(request_id)

    def trusted(self, repo: str) -> tuple[bytes, bytes | None] | None:
        return self._pending.trusted.get(repo)

    def trusting(self) -> list[str]:
        return sorted(self._pending.trusted)

    def last_event(self) -> int:
        return len(self.durable.events)

    def find_events(
        self, after: int, until: int, fields: Mapping[str, Sequence[str]]
    ) -> list[Event]:
        return [
            event
            for event in self.durable.events[after:until]
            if all(getattr(event, name) in values for name, values in fields.items())
        ]

    def hear_ends(self, repo: str, notify: Callable[[], object] | None) -> None:
        if notify is None:
            self.heard.pop(repo, None)
        else:
            self.heard[repo] = notify

    def state(self, job: str) -> State | None:
        held = self.durable.jobs.get(job)
        return None if held is None else held.state

    def traits(self, job: str) -> Traits | None:
        rows, found = self.durable, self.durable.traits.get(job)
        work = None if found is None else rows.jobs[job].work
        if found is None or work not in rows.workflows:
            return found
        origin = msgspec.json.decode(rows.workflows[work][2])["origin"]
        return structs.replace(found, began=origin)

    def window_of(self, job: str) -> str | None:
        keys = (key for key, of in self.durable.requests.items() if of == job)
        told = self.durable.occurrences.get(next(keys, ""))
        return None if told is None else told.key

    def decided(self, occurrence: str) -> bool:
        return occurrence in self._pending.occurrences

    def ran(self, job: str) -> float:
        held = self._pending.jobs.get(job)
        started = None if held is None else held.started_at
        ended = self._pending.ended_at.get(job)
        return 0.0 if started is None or ended is None else ended - started
