"""What the scheduler of an EPIC knows of its issues, and what it does next: pure.

Facts of this machine outweigh what the graph says: an issue that somebody works on is
*owned*; one that was worked on in this run, or cannot be, is *held* until it ends.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Generic, TypeVar

from forge_actors.domain.epic.verdicts import evaluate, ready_set

if TYPE_CHECKING:
    from collections.abc import Collection

    from forge_actors.domain.epic.graph import Snapshot
    from forge_actors.domain.epic.records import Claim
    from forge_actors.domain.epic.verdicts import Fact, Verdict

#: Snapshots that are taken at once, one after the other, because an issue had changed.
STALE_IN_A_ROW = 3

W = TypeVar("W")


class Progress(Generic[W]):
    """`W` is what there is of a worker."""

    def __init__(
        self, limit: int, poll: float, satisfied_by: Collection[str] = ()
    ) -> None:
        self._limit = limit
        self._poll = poll
        self._satisfied_by = frozenset(satisfied_by)
        #: Facts that stay until the run ends.
        self.held: dict[int, Fact] = {}
        #: Issues that others work on, as far as could be seen.
        self.observed: set[int] = set()
        #: Those of them for which the graph was read once more before the end.
        self._looked_at: set[int] = set()
        self.live: dict[int, W] = {}
        #: Workers that have ended and whose claim is still open, and their status.
        self.ended: dict[int, tuple[W, int | None]] = {}
        #: Open claims of earlier runs, whose work can be gone on with.
        self.earlier: dict[int, Claim] = {}
        self.snapshot: Snapshot | None = None
        self._taken_at = 0.0
        self._forced = False
        #: The snapshot is known to be old, and the next one comes in its time.
        self._outdated = False
        self._stale = 0

    # -- slots -----------------------------------------------------------------------

    @property
    def free(self) -> int:
        """Issues that may be begun now; one is free once its worker has ended."""
        return self._limit - len(self.live)

    @property
    def busy(self) -> bool:
        return bool(self.live or self.ended)

    # -- snapshots -------------------------------------------------------------------

    def wants_snapshot(self, now: float) -> bool:
        """Whether the graph is to be read now."""
        return self.next_snapshot is not None and now >= self.next_snapshot

    @property
    def next_snapshot(self) -> float | None:
        """When the graph is to be read; None while nothing can begin."""
        if self.free <= 0:
            return None
        at_once = self._forced or self.snapshot is None
        return -math.inf if at_once else self._taken_at + self._poll

    def taken(self, snapshot: Snapshot, now: float) -> None:
        """A snapshot has been completed and is the one that counts."""
        self.snapshot, self._taken_at = snapshot, now
        self._forced = self._outdated = False

    def stale(self) -> None:
        """An issue was found changed when it was about to begin."""
        self._stale += 1
        if self._stale <= STALE_IN_A_ROW:
            self._forced = True
        else:
            self._outdated = True

    def admitted(self) -> None:
        self._stale = 0

    # -- verdicts --------------------------------------------------------------------

    def facts(self) -> dict[int, Fact]:
        owned: dict[int, Fact] = dict.fromkeys(
            (*self.observed, *self.live, *self.ended), "owned"
        )
        return {**self.held, **owned}

    def verdicts(self) -> tuple[Verdict, ...]:
        assert self.snapshot is not None
        return evaluate(self.snapshot, self.facts(), satisfied_by=self._satisfied_by)

    def graph_verdicts(self) -> dict[int, Verdict]:
        """What the graph alone says of issues of the repository itself, by number."""
        assert self.snapshot is not None
        found = evaluate(self.snapshot, {}, satisfied_by=self._satisfied_by)
        ids = set(self.snapshot.ids.values())
        return {verdict.number: verdict for verdict in found if verdict.issue_id in ids}

    def ready(self) -> list[int]:
        """Numbers of the issues that may begin, in their order; none while the
        snapshot is known to be old."""
        if self.snapshot is None or self._forced or self._outdated:
            return []
        return [verdict.number for verdict in ready_set(self.verdicts())]

    def anything_left(self) -> bool:
        """Whether to go on although nobody works. It may ask for one more snapshot:
        for issues that others had, once each."""
        if self._forced or self.snapshot is None:
            return True
        if ready_set(self.verdicts()):
            return True
        if unseen := self.observed - self._looked_at:
            self._looked_at |= unseen
            self._forced = True
            return True
        return False
