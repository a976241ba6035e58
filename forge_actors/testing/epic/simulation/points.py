"""Points: what crosses a port of a scheduler, each by a name that a fault can tell.

A write is named by what it is about; a read of the graph, the start of a worker and a
pass of the loop are points too, and at each the scheduler may be killed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from forge_actors.domain.epic.places import Place

When = Literal["before", "after"]
#: `kill`: the scheduler is killed. `fail`: the disk takes nothing, or a lock cannot be
#: looked at. `refuse`, `slow`: the server does not answer, or not soon. `change`: a
#: person changes an issue that was ready in what was read.
Kind = Literal["kill", "fail", "refuse", "slow", "change"]

WRITES = (
    "scheduler begins",
    "scheduler admits otherwise",
    "scheduler has read",
    "scheduler ends",
    "scheduler aside",
    "request removed",
    "binding",
    "assignment",
    "claim",
    "claim noted",
    "claim superseded",
    "claim settled",
    "claim resumable",
    "claim abandoned",
)
READS = (
    "read repository",
    "read epic",
    "read snapshot",
    "read reread",
)
#: What else takes a while, or several steps.
STEPS = ("start", "pass")
LOCK = "lock"
#: Files and folders that a scheduler looks at.
LOOKS = (
    "look at binding.json",
    "look at claim",
    "look at state.json",
    "look at scheduler.json",
    "look at stop.json",
    "look at folder",
)


class Fault(Struct, frozen=True):
    """At the nth time of a point, this goes wrong."""

    kind: Kind
    point: str
    when: When
    nth: int

    def __str__(self) -> str:
        return f"{self.kind} {self.when} {self.point} number {self.nth}"


def all_faults() -> tuple[tuple[Kind, str, When], ...]:
    """Every fault at every point where it can happen."""
    whens: tuple[When, When] = ("before", "after")
    found: list[tuple[Kind, str, When]] = [
        ("kill", point, when) for point in (*WRITES, *READS, *STEPS) for when in whens
    ]
    found += [("fail", point, "before") for point in (*WRITES, *LOOKS, LOCK)]
    found += [(kind, point, "before") for point in READS for kind in ("refuse", "slow")]
    found.append(("change", "read snapshot", "after"))
    return tuple(found)


class Injector:
    """Counts the points of one run and says what goes wrong there."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self._planned = {(each.point, each.when, each.nth): each for each in faults}
        self._counts: dict[str, int] = {}
        #: What has happened, for the coverage.
        self.hits: list[Fault] = []
        #: Called with each.
        self.tell: Callable[[Fault], None] = lambda _fault: None

    def before(self, point: str) -> Kind | None:
        """The point is about to be passed."""
        self._counts[point] = self._counts.get(point, 0) + 1
        return self._at(point, "before")

    def after(self, point: str) -> Kind | None:
        return self._at(point, "after")

    def heal(self) -> None:
        """Nothing goes wrong any more."""
        self._planned.clear()

    def _at(self, point: str, when: When) -> Kind | None:
        if not self._planned:
            return None
        fault = self._planned.pop((point, when, self._counts[point]), None)
        if fault is None:
            return None
        self.hits.append(fault)
        self.tell(fault)
        return fault.kind


def look_of(place: Place) -> str:
    """Which look at a file this is."""
    return "look at claim" if place[-2] == "claims" else f"look at {place[-1]}"


def point_of(place: Place, before: bytes | None, after: bytes | None) -> str:
    """Which write this is; `after` is None for a removal."""
    name = place[-1]
    if name == "scheduler.json":
        return _of_scheduler(_plain(before), _plain(after))
    if name == "stop.json":
        return "request removed"
    if name == "binding.json":
        return "binding"
    if name == "issue.json":
        return "assignment"
    if place[-2] == "claims":
        return _of_claim(_plain(before), _plain(after))
    raise AssertionError(f"nobody but a worker writes {place}")


def _of_scheduler(before: Any, after: Any) -> str:
    if before is None or before["invocation"]["id"] != after["invocation"]["id"]:
        return "scheduler begins"
    if after["invocation"]["ended_at"] is not None:
        return "scheduler ends"
    if before["admission"] != after["admission"]:
        return "scheduler admits otherwise"
    return "scheduler has read"


def _of_claim(before: Any, after: Any) -> str:
    if before is None:
        return "claim"
    if after["closed"] is None:
        return "claim noted"
    return f"claim {after['closed']['classification']}"


def _plain(data: bytes | None) -> Any:
    try:
        return None if data is None else msgspec.json.decode(data)
    except msgspec.DecodeError:
        return None
