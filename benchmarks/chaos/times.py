"""How long the service took to come back, and until interrupted jobs were decided."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.chaos.processes import Start
from benchmarks.chaos.story import INTERRUPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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


@dataclass(frozen=True)
class Decision:
    """How long it took to decide what becomes of one attempt that a kill hit."""

    job: str
    blow: Blow
    #: Seconds since the next service was ready, and since its start began. Where only
    #: the agent was killed both begin with that.
    since_ready: float
    since_start: float


def decisions(evidence: Evidence, story: Story) -> list[Decision]:
    """Of all attempts that were on their way when an agent was killed.

    The service that counts is the first one that lived long enough.
    """
    found = []
    for blow in evidence.blows:
        if blow.agent is None:
            continue
        for job, told in story.jobs.items():
            for attempt in told.attempts:
                start = _start(evidence, blow, attempt)
                decided = attempt.decided
                if (
                    _reserved(attempt, blow)
                    and start is not None
                    and decided is not None
                ):
                    spans = (
                        max(0.0, decided - one) for one in (start.ready, start.began)
                    )
                    found.append(Decision(job, blow, *spans))
    return found


def unknown_ends(evidence: Evidence, story: Story) -> list[float]:
    """Of runs that ended, and whose end nobody knew: seconds from that to the kill.

    A job has ended for itself a moment before anybody can write that down.
    """
    found = []
    for runs in evidence.runs.values():
        for run in runs:
            attempts = story.attempts(run.job)
            codes = [one.code for one in attempts if one.number == run.attempt]
            if run.ended is not None and INTERRUPTIONS.intersection(codes):
                kills = [
                    before - run.ended
                    for blow in evidence.blows
                    for before, after in blow.spans
                    if after > run.began
                ]
                found.append(max(0.0, min(kills, default=math.inf)))
    return found


def late(decided: Iterable[Decision]) -> Iterator[str]:
    """The jobs that were not decided in time after everything had been killed."""
    for one in decided:
        if one.blow.target == "all" and one.since_ready > DECIDED_SECONDS:
            yield (
                f"it took {one.since_ready:.2f} s from ready until {one.job} was in its"
                f" right state: {one.blow}"
            )


def _reserved(attempt: Attempt, blow: Blow) -> bool:
    """Whether an attempt was on its way when the blow fell."""
    assert blow.agent is not None
    first = min(blow.agent[0], blow.service or blow.agent[0])
    decided = attempt.decided
    return attempt.dispatched <= first and (decided is None or decided > blow.agent[1])


def _start(evidence: Evidence, blow: Blow, attempt: Attempt) -> Start | None:
    assert blow.agent is not None
    if blow.service is None:
        return Start(blow.agent[1], blow.agent[1])
    deaths = [one.service for one in evidence.blows if one.service is not None]
    for start in evidence.starts:
        if start.ready < blow.service:
            continue
        death = min((one for one in deaths if one > start.ready), default=None)
        if death is None or death > start.ready + DECIDED_SECONDS:
            return start
        if attempt.decided is not None and attempt.decided < death:
            return start
    return None
