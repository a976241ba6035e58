"""What the history says in numbers: attempts by how they ended, and how long it took.

The events are counted when somebody asks, each one once, in their order. So a job pays
nothing for being counted.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from forge_actors.domain.events import ACCEPTED
from forge_actors.domain.jobs import KINDS, RESERVED, STATES
from forge_actors.domain.metrics import Family, Histogram

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from forge_actors.domain.events import Event

#: Seconds.
DELAYS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    *(60.0, 300.0, 1800.0, 3600.0, 21600.0),
)
LENGTHS = (0.1, 1.0, 10.0, 60.0, 300.0, 1800.0, 3600.0, 10800.0, 43200.0)
_STATES = {f"job_{state}": state for state in STATES}
_OUTCOMES = tuple(state for state in STATES if state not in RESERVED)


class Moments(NamedTuple):
    """When a job was accepted, and when it came into the queue last."""

    accepted: float
    queued: float


class _Attempt(NamedTuple):
    number: object
    at: float


class EventCounts:
    """What was counted so far. `reserved`: the jobs that had an attempt before."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self.accepted: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.delays = {
            since: Histogram(DELAYS) for since in ("accepted", "queued", "dispatched")
        }
        self.lengths = Histogram(LENGTHS)
        #: The attempts that have not ended; of some nobody knows when they began.
        self._attempts: dict[str, _Attempt | None] = dict.fromkeys(reserved)

    def starts(self, events: Sequence[Event]) -> list[str]:
        """The jobs whose moments it takes to count these events."""
        return [e.job for e in events if e.kind == "job_running" and e.job is not None]

    def add(self, events: Sequence[Event], moments: Mapping[str, Moments]) -> None:
        """Count events that follow those before."""
        for event in events:
            state, job = _STATES.get(event.kind), event.job
            if state is None or job is None:
                continue
            if event.data.get("reason") == ACCEPTED:
                self.accepted[str(event.data.get("kind"))] += 1
            if state == "dispatched":
                self._attempts[job] = _Attempt(event.data.get("attempt"), event.at)
            elif state == "running":
                self._started(self._attempts.get(job), event.at, moments.get(job))
            elif job in self._attempts:
                self.outcomes[state] += 1
                attempt = self._attempts.pop(job)
                if attempt is not None:
                    self.lengths.add(max(0.0, event.at - attempt.at))

    def _started(
        self, attempt: _Attempt | None, at: float, moments: Moments | None
    ) -> None:
        if attempt is None:
            return  # it was taken over
        self.delays["dispatched"].add(max(0.0, at - attempt.at))
        if moments is None:
            return
        # It may have come back to the queue since.
        if moments.queued <= attempt.at:
            self.delays["queued"].add(at - moments.queued)
        if attempt.number == 1:
            self.delays["accepted"].add(max(0.0, at - moments.accepted))

    def families(self) -> list[Family]:
        return [
            Family(
                "forge_jobs_accepted",
                "counter",
                "Jobs that were accepted.",
                ("kind",),
                {(kind,): self.accepted[kind] for kind in KINDS},
            ),
            Family(
                "forge_attempts",
                "counter",
                "Attempts that have ended, by the state of their job then.",
                ("outcome",),
                {(state,): self.outcomes[state] for state in _OUTCOMES},
            ),
            Family(
                "forge_start_delay_seconds",
                "histogram",
                "Until a job runs: since it was accepted (first attempts), since it"
                " came into the queue, since it was dispatched.",
                ("since",),
                histograms={(since,): seen for since, seen in self.delays.items()},
            ),
            Family(
                "forge_attempt_seconds",
                "histogram",
                "From the dispatch of an attempt to its end.",
                histograms={(): self.lengths},
            ),
        ]
