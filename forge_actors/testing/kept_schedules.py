"""The half of the store in memory that the schedules need, and those who trust them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.domain.schedules import Occurrence
    from forge_actors.testing.rows import Rows


class SchedulesInMemory:
    """The port `ScheduleStore`, but for what every store has."""

    durable: Rows
    _pending: Rows

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

    def ran(self, job: str) -> float:
        started = self._pending.jobs[job].started_at
        ended = self._pending.ended_at.get(job)
        return 0.0 if started is None or ended is None else ended - started
