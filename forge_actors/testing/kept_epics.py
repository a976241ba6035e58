"""The half of the store in memory that the runs of EPICs need."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.testing.rows import Rows


class EpicsInMemory:
    """What the port `Store` has of them."""

    _pending: Rows

    def epic(self, run: str) -> bytes | None:
        row = self._pending.epics.get(run)
        return None if row is None else row[2]

    def active_epics(self) -> list[str]:
        return sorted(key for key, row in self._pending.epics.items() if row[0])

    def epic_of_request(self, request: str) -> str | None:
        rows = self._pending.epics.items()
        return next((key for key, row in rows if row[1] == request), None)
