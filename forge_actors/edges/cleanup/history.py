"""The class `events`: the oldest part of the history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.cleaning import ClassReport, Removal

if TYPE_CHECKING:
    from forge_actors.domain.cleaning import CleanClass, Desk

#: Events that stay, whatever their age, unless the rules say another number.
KEPT = 1_000_000


class EventCleaner:
    """Keeps the newest events, up to a number of them."""

    name: CleanClass = "events"

    def run(self, desk: Desk, cursor: str | None) -> ClassReport:
        """See `Cleaner`."""
        kept = desk.rules.get("events", {}).get("count", KEPT)
        [(first, last)] = desk.read("history_range")
        desk.scanned()
        if last is not None and last - first > kept:
            before = last - kept
            gone = before - first
            if not desk.request.dry_run:
                gone = desk.forget_events(before)
            if gone:
                what = f"events before number {before}"
                desk.removed(Removal(self.name, what, f"more than {kept} are there"))
        return ClassReport(self.name)
