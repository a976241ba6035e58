"""The class `events`: the oldest part of the history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.cleaning import ClassReport, Removal
from forge_actors.domain.retention import (
    EventNumbers,
    Policy,
    events_before,
    policy_of,
)

if TYPE_CHECKING:
    from forge_actors.domain.cleaning import CleanClass, Desk


class EventCleaner:
    """Keeps the newest events, by their number and their age."""

    name: CleanClass = "events"

    def run(self, desk: Desk, cursor: str | None) -> ClassReport:
        """See `Cleaner`."""
        report = ClassReport(self.name)
        policy = policy_of(desk.rules, self.name)
        [(first, last)] = desk.read("history_range")
        desk.scanned()
        if last is None or not policy.on:
            return report
        before, reason = events_before(policy, _numbers(desk, policy, first, last))
        if before > first:
            gone = before - first
            if not desk.request.dry_run:
                gone = desk.forget_events(before)
            if gone:
                what = f"events before number {before}"
                desk.removed(Removal(self.name, what, reason))
        if policy.age is not None:
            # The first one that is left, unless it has to wait for a job to end.
            due = _at(desk, before) + max(policy.age, policy.grace)
            report.due_at = due if due > desk.request.now else None
        return report


def _numbers(desk: Desk, policy: Policy, first: int, last: int) -> EventNumbers:
    now = desk.request.now
    in_age = first
    if policy.age is not None:
        in_age = _first_since(desk, first, last, now - policy.age)
    in_grace = _first_since(desk, first, last, now - policy.grace)
    return EventNumbers(first, last, in_age, in_grace)


def _first_since(desk: Desk, first: int, last: int, moment: float) -> int:
    """The first number, of those at which a row begins, whose event is that young."""
    low, high = first, last + 1
    while low < high:
        middle = (low + high) // 2
        if _at(desk, middle) >= moment:
            high = middle
        else:
            low = middle + 1
    return low


def _at(desk: Desk, number: int) -> float:
    """When the row of history was begun that holds the event of this number."""
    rows = desk.read("history_moment", number)
    return float(rows[0][0] or 0.0) if rows else 0.0
