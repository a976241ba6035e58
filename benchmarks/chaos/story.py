"""What the events tell of each attempt of each job."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forge_actors.domain.history import BrokenHistory, History
from forge_actors.domain.jobs import RESERVED, TERMINAL

if TYPE_CHECKING:
    from benchmarks.chaos.evidence import Evidence

#: What can end an attempt without any doing of the job.
INTERRUPTIONS = frozenset(
    {"WORKER_LOST", "INTERRUPTED", "SIGNALLED", "OPERATION_OUTCOME_AMBIGUOUS"}
)


@dataclass
class Attempt:
    """One dispatch; moments of the monotonic clock."""

    number: int
    fence: int
    dispatched: float
    #: When it was decided what becomes of it, the state that was, and why.
    decided: float | None = None
    state: str | None = None
    code: str | None = None


@dataclass
class Told:
    """One job as the events tell it."""

    attempts: list[Attempt] = field(default_factory=list)
    #: Its terminal events: there is to be one.
    ends: list[str] = field(default_factory=list)
    code: str | None = None


@dataclass
class Story:
    """All jobs, and what in the events cannot be."""

    jobs: dict[str, Told] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    #: Most jobs that were dispatched or running at one moment.
    most: int = 0

    def attempts(self, job: str | None) -> list[Attempt]:
        """All of a job, none of one that is not known."""
        told = None if job is None else self.jobs.get(job)
        return [] if told is None else told.attempts


def read_story(evidence: Evidence) -> Story:
    """Fold the events: `History` refuses moves that are none, and sees the limits."""
    story, history = Story(), History()
    for event in evidence.events:
        try:
            history.apply(event)
        except BrokenHistory as error:
            story.wrong.append(f"the events contradict themselves: {error}")
            return story
        if event.job is None:
            continue
        told = story.jobs.setdefault(event.job, Told())
        word, at = event.kind.removeprefix("job_"), evidence.at(event)
        if word in ("readied", "dispatched"):
            number, fence = event.data["attempt"], event.data["fence"]
            assert isinstance(number, int)
            assert isinstance(fence, int)
            known = told.attempts[-1] if told.attempts else None
            if known is None or (known.number, known.fence) != (number, fence):
                told.attempts.append(Attempt(number, fence, at))
            # One that is readied has no tokens yet, and may begin while nobody is there
            # to tell that it has them.
            if word == "readied":
                continue
            story.wrong += history.faults(event.job)
            story.most = max(story.most, len(history.holders("workers")))
            continue
        last = told.attempts[-1] if told.attempts else None
        code = _code(event.data)
        if last is not None and last.decided is None and word not in RESERVED:
            last.decided, last.state, last.code = at, word, code
        if word in TERMINAL:
            told.ends.append(word)
            told.code = code
    return story


def _code(data: dict[str, Any]) -> str | None:
    error = data.get("error")
    return None if error is None else str(error["code"])
