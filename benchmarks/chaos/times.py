"""How long the service took to come back, and until interrupted jobs were decided."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.chaos.evidence import Evidence
    from benchmarks.chaos.kills import Blow
    from benchmarks.chaos.story import Attempt, Story

#: After service, agent and jobs were killed, each job is in its right state so many
#: seconds after the service is ready again.
DECIDED_SECONDS = 1.0


@dataclass(frozen=True)
class Spread:
    """Some durations; of none of them both numbers are 0."""

    count: int
    median: float
    most: float

    def __str__(self) -> str:
        if not self.count:
            return "none"
        return f"median {self.median:.2f} s, at most {self.most:.2f} s ({self.count})"


def spread(durations: Sequence[float]) -> Spread:
    if not durations:
        return Spread(0, 0.0, 0.0)
    return Spread(len(durations), statistics.median(durations), max(durations))


def decision_times(evidence: Evidence, story: Story) -> dict[str, dict[str, float]]:
    """By target of the kill: jobs that it hit, and the seconds until each was decided.

    They begin with the first ready service after it that lived long enough; where only
    the agent was killed, with that kill.
    """
    found: dict[str, dict[str, float]] = {}
    for blow in evidence.blows:
        if blow.agent is None:
            continue
        times = found.setdefault(blow.target, {})
        for job, told in story.jobs.items():
            for attempt in told.attempts:
                if _reserved(attempt, blow):
                    begin = _begin(evidence, blow, attempt)
                    if begin is not None and attempt.decided is not None:
                        times[f"{job}, {blow}"] = max(0.0, attempt.decided - begin)
    return found


def late(times: dict[str, dict[str, float]]) -> Iterator[str]:
    """The jobs that were not decided in time after everything had been killed."""
    for what, seconds in times.get("all", {}).items():
        if seconds > DECIDED_SECONDS:
            yield f"it took {seconds:.2f} s from ready to the right state: {what}"


def _reserved(attempt: Attempt, blow: Blow) -> bool:
    """Whether an attempt was on its way when the blow fell."""
    assert blow.agent is not None
    first = min(blow.agent[0], blow.service or blow.agent[0])
    decided = attempt.decided
    return attempt.dispatched <= first and (decided is None or decided > blow.agent[1])


def _begin(evidence: Evidence, blow: Blow, attempt: Attempt) -> float | None:
    assert blow.agent is not None
    if blow.service is None:
        return blow.agent[1]
    deaths = [one.service for one in evidence.blows if one.service is not None]
    for start in evidence.starts:
        if start.ready < blow.service:
            continue
        death = min((one for one in deaths if one > start.ready), default=None)
        if death is None or death > start.ready + DECIDED_SECONDS:
            return start.ready
        if attempt.decided is not None and attempt.decided < death:
            return start.ready
    return None
