"""Faults: what goes wrong in a run, and where. A plan names each by its place.

A *point* is one thing that crosses a port: a kind of row that is committed, a message
that is sent or taken, an entry of the agent's journal, a process that is started. Each
is counted, so that "before the third `commit JobEnded`" is one moment of a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

When = Literal["before", "after"]
#: `service`, `agent`: that one crashes. `lose`, `late`, `repeat`: a message is. `slow`,
#: `fail`: a commit takes long, or the disk takes nothing for a while. `error`: a read
#: raises, and with it the actor that reads. A journal can `fail` too.
Kind = Literal["service", "agent", "lose", "late", "repeat", "slow", "fail", "error"]


class Fault(Struct, frozen=True):
    """At the nth time of a point, this goes wrong; `amount` is in seconds."""

    kind: Kind
    point: str
    when: When
    nth: int
    amount: float = 0.0

    def __str__(self) -> str:
        text = f"{self.kind} {self.when} {self.point} number {self.nth}"
        return f"{text}, {self.amount:g} s" if self.amount else text


class Injector:
    """Counts the points of one run and lets the planned faults happen."""

    def __init__(self, faults: Iterable[Fault], crash: Callable[[Fault], None]) -> None:
        self._planned: dict[tuple[str, When, int], Fault] = {
            (fault.point, fault.when, fault.nth): fault for fault in faults
        }
        self._crash = crash
        self._counts: dict[str, int] = {}
        #: What has happened, for the coverage.
        self.hits: list[Fault] = []

    def before(self, point: str) -> Fault | None:
        """The point is about to be passed: the fault of it, if it is not a crash."""
        count = self._counts.get(point, 0) + 1
        self._counts[point] = count
        return self._at((point, "before", count))

    def after(self, point: str) -> Fault | None:
        return self._at((point, "after", self._counts[point]))

    def heal(self) -> None:
        """Nothing goes wrong any more."""
        self._planned.clear()

    def _at(self, place: tuple[str, When, int]) -> Fault | None:
        fault = self._planned.pop(place, None) if self._planned else None
        if fault is None:
            return None
        self.hits.append(fault)
        if fault.kind in ("service", "agent"):
            self._crash(fault)
            return None
        return fault

    @property
    def reached(self) -> list[str]:
        return sorted(self._counts)
