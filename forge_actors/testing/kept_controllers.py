"""The half of the store in memory that the controllers need."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.domain.jobs import State
    from forge_actors.testing.rows import Rows


class ControllersInMemory:
    """The port `ControllerStore`, but for what every store has."""

    _pending: Rows

    def controllers(self) -> list[tuple[str, str, bytes]]:
        rows = self._pending.controllers.values()
        return sorted((row[:2] + row[3:] for row in rows), key=lambda row: row[1])

    def wake(self, wake: str) -> bytes | None:
        row = self._pending.wakes.get(wake)
        return None if row is None else row[3]

    def open_wakes(self, controller: str) -> list[bytes]:
        rows = sorted(
            (row[1], row[3])
            for row in self._pending.wakes.values()
            if row[0] == controller and row[2] in ("prepared", "dispatching")
        )
        return [body for _, body in rows]

    def job_known(self, job: str) -> State | None:
        known = self._pending.jobs.get(job)
        return None if known is None else known.state
