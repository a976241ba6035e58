"""What the referee knows of one scheduler, and what is on the disk of an issue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import msgspec

from forge_actors.domain.epic import places
from forge_actors.domain.epic.graph import CLOSED, OPEN
from forge_actors.domain.epic.records import SETTLED, Binding, Claim, EngineState

if TYPE_CHECKING:
    from collections.abc import Collection

    from forge_actors.domain.epic.graph import ChildNode, Reread, Snapshot
    from forge_actors.domain.epic.ports import RunLock
    from forge_actors.domain.epic.records import EpicRef
    from forge_actors.testing.epic.root import MemoryRoot

Try = Literal["busy", "taken", "failed"]
Stop = Literal["signal", "now", "drain"]
Left = Literal["absent", "fresh", "resumable", "settled", "uncertain", "other-epic"]
#: Whether records are strictly read is another matter.
BINDING = msgspec.json.Decoder(Binding)
STATE = msgspec.json.Decoder(EngineState)
CLAIM = msgspec.json.Decoder(Claim)


@dataclass
class Book:
    """Of one scheduler; moments are those of the run."""

    #: Issues for which a worker was to be started.
    begun: set[int] = field(default_factory=set)
    #: How it tried to take the locks of issues, and when.
    tries: dict[int, list[tuple[float, Try]]] = field(default_factory=dict)
    #: What it found of issues before it read the graph for the first time.
    left: dict[int, Left] = field(default_factory=dict)
    #: Issues of which something could not be read or written.
    failures: set[int] = field(default_factory=set)
    #: When it learned that it is to stop, and how.
    stops: list[tuple[float, Stop]] = field(default_factory=list)
    snapshot: Snapshot | None = None
    reading: bool = False
    #: Reads that began, and those that came before their time.
    reads: int = 0
    early: int = 0
    completed_at: float = 0.0
    #: No snapshot may be read any more.
    refused: bool = False
    #: An issue had changed, so that nothing begins before the next snapshot.
    stale: bool = False
    passes: int = 0
    #: Something could not be read or written of the run itself.
    untold: bool = False
    #: By issue: under which lock it was read again, beside which snapshot.
    again: dict[int, tuple[RunLock, Snapshot, Reread]] = field(default_factory=dict)
    #: Since when it has a slot, and since when nothing keeps it from reading.
    free_since: float = 0.0
    busy_until: float = 0.0
    #: The statuses that `scheduler.json` has told, in their order.
    statuses: list[str] = field(default_factory=list)

    @property
    def interrupts(self) -> list[float]:
        """When it was told to stop at once."""
        signals = [at for at, what in self.stops if what == "signal"]
        return sorted(signals + [at for at, what in self.stops if what == "now"][:1])

    def has(self, *what: Stop) -> bool:
        return any(each in what for _, each in self.stops)

    def last_try(self, issue: int) -> tuple[float, Try | None]:
        return self.tries[issue][-1] if issue in self.tries else (-1.0, None)

    def failed(self, issue: int) -> bool:
        """Whether something went wrong with it, for which it may be left alone."""
        tries = self.tries.get(issue, ())
        return issue in self.failures or any(how == "failed" for _, how in tries)


def left_of(files: MemoryRoot, issue: int, epic: EpicRef, known: int | None) -> Left:
    """What the files of an issue are for the next scheduler; `known` is the id that the
    server gives it."""
    space = places.namespace(issue)
    depth = len(space)
    kept = [place for place in files.files if place[:depth] == space]
    if not kept:
        return "absent"
    data, saved = files.files.get(places.binding(issue)), None
    binding = None if data is None else BINDING.decode(data)
    if binding is not None and binding.epic != epic:
        return "other-epic"
    if (bytes_ := files.files.get(places.state(issue))) is not None:
        try:
            saved = STATE.decode(bytes_)
        except msgspec.DecodeError:
            return "uncertain"
    if binding is None:
        return "fresh" if kept == [places.assignment(issue)] else "uncertain"
    if known is not None and known != binding.issue_id:
        return "uncertain"
    if saved is None:
        return "fresh"
    return "settled" if saved.phase in SETTLED else "resumable"


def is_ready(
    node: ChildNode, snapshot: Snapshot, satisfied_by: Collection[str]
) -> bool:
    """Whether an issue may begin, by what the server says of it."""
    if node.state != OPEN or node.pull_request or node.children:
        return False
    if node.id == snapshot.epic.id or node.place != snapshot.place:
        return False
    return all(
        blocker.state == CLOSED
        and (
            blocker.reason == "completed"
            or "any" in satisfied_by
            or (blocker.reason or "").replace("_", "-") in satisfied_by
        )
        for blocker in node.blockers
    )
