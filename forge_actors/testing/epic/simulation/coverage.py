"""What the runs of many seeds must reach: faults at every point, and every end."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from forge_actors.testing.epic.simulation.book import Left
from forge_actors.testing.epic.simulation.pace import ENDS
from forge_actors.testing.epic.simulation.points import all_faults

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.testing.epic.simulation.points import Fault

#: How a scheduler ends.
OUTCOMES = (
    "nothing-admissible",
    "drained",
    "stopped",
    "interrupted",
    "degraded",
    "refused at its start",
    "another has it",
    "its record was not written",
    "killed",
)
#: What else must have come to pass.
DEEDS = (
    *(f"end: {outcome}" for outcome in OUTCOMES),
    *(f"row: {' '.join(map(str, row))}" for row in sorted(ENDS, key=str)),
    *(f"found: {left}" for left in get_args(Left)),
    "left: resumable, its claim open",
    "no log",
    "no process",
    "a process although starting failed",
    "a worker drains",
    "something keeps the lock of an issue",
    "somebody else has an issue",
    "a request to stop another run",
    "a broken record",
    "a grant",
    "no grant ever",
)
#: Runs within which all of it must be reached.
REACHED_WITHIN = 2000


class Coverage:
    """What some runs have reached, and how often."""

    def __init__(self) -> None:
        self.faults = {" ".join(fault): 0 for fault in all_faults()}
        self.deeds = dict.fromkeys(DEEDS, 0)

    def add(self, hits: Iterable[Fault], deeds: Iterable[str]) -> None:
        for fault in hits:
            self.faults[f"{fault.kind} {fault.point} {fault.when}"] += 1
        for deed in deeds:
            self.deeds[deed] = self.deeds.get(deed, 0) + 1

    @property
    def missing(self) -> list[str]:
        """What was not reached."""
        counts = {**self.faults, **self.deeds}
        return [name for name, count in counts.items() if not count]

    def summary(self) -> str:
        """How much was reached, and what was not."""
        counts = (self.faults, self.deeds)
        reached = [sum(count > 0 for count in table.values()) for table in counts]
        return "\n".join(
            (
                f"faults by point and moment: {reached[0]} of {len(self.faults)}",
                f"ends and deeds: {reached[1]} of {len(self.deeds)}",
                *(f"  not reached: {each}" for each in self.missing),
            )
        )
