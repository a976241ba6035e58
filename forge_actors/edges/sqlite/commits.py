"""The end of a transaction, and what all of them came to together."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from forge_actors.domain.metrics import Histogram
from forge_actors.edges.sqlite import history

if TYPE_CHECKING:
    from collections.abc import Sequence

    import apsw

    from forge_actors.domain.events import Event

#: Seconds.
BOUNDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0)


class Commits:
    """The commits of one store."""

    def __init__(self) -> None:
        self.seconds = Histogram(BOUNDS)
        #: Moves that rode along.
        self.moves = 0

    def end(
        self,
        db: apsw.Connection,
        sql: dict[str, str],
        first: int,
        events: Sequence[Event],
        moves: int,
    ) -> None:
        """Write the events, the first with the number `first`, and commit."""
        history.append(db, sql, first, events)
        begun = perf_counter()
        db.execute("COMMIT")
        self.seconds.add(perf_counter() - begun)
        self.moves += moves
