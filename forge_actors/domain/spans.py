"""Spans: what an attempt was, with its phases, made of the events of its job."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, structs

from forge_actors.domain.jobs import STATES, TERMINAL
from forge_actors.domain.tracing import TraceParent, own_span, span_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forge_actors.domain.events import Event

_STATES = {f"job_{state}": state for state in STATES}


class Begun(Struct, frozen=True):
    """An attempt that has not ended. Since when its job waited is None where that was
    since it was accepted."""

    attempt: int
    dispatched: float
    since: float | None = None
    running: float | None = None


class Ended(Struct, frozen=True):
    """An attempt that has; `begun` is None of a job that ended before it had one."""

    job: str
    state: str
    at: float
    begun: Begun | None
    error: str | None = None


class About(NamedTuple):
    """What the spans of a job say of it."""

    kind: str
    repository: str
    accepted: float
    parent: TraceParent | None


class Span(Struct, frozen=True):
    """One span and those within it; times are seconds since 1970."""

    name: str
    id: TraceParent
    parent: TraceParent | None
    start: float
    end: float
    attributes: dict[str, str | int] = {}
    error: str | None = None
    within: tuple[Span, ...] = ()


class Attempts:
    """The attempts that have not ended, by their jobs, as far as the events go."""

    def __init__(self, begun: Mapping[str, Begun]) -> None:
        self._begun = dict(begun)
        #: When jobs came back to the queue that had an attempt before.
        self._back: dict[str, float] = {}

    def add(self, events: Sequence[Event]) -> list[Ended]:
        """What ended in events that follow those before."""
        ended = []
        for event in events:
            state, job = _STATES.get(event.kind), event.job
            if state is None or job is None:
                continue
            if state == "dispatched":
                attempt = event.data.get("attempt")
                since = self._back.pop(job, None)
                number = attempt if isinstance(attempt, int) else 0
                self._begun[job] = Begun(number, event.at, since)
            elif state == "running":
                if job in self._begun:
                    begun = structs.replace(self._begun[job], running=event.at)
                    self._begun[job] = begun
            elif job in self._begun or state in TERMINAL:
                found = self._begun.pop(job, None)
                ended.append(Ended(job, state, event.at, found, _code(event)))
                if state in TERMINAL:
                    self._back.pop(job, None)
                else:
                    self._back[job] = event.at
        return ended


def _code(event: Event) -> str | None:
    error = event.data.get("error")
    return str(error.get("code")) if isinstance(error, dict) else None


def span_of(ended: Ended, about: About) -> Span:
    """The span of an attempt: in it the time in the queue, and that of running."""
    begun = ended.begun
    number = 0 if begun is None else begun.attempt
    own = own_span(ended.job, number, about.parent)
    start = about.accepted
    if begun is not None and begun.since is not None:
        start = begun.since
    queued_until = ended.at if begun is None else begun.dispatched
    phases = [("queue", start, queued_until)]
    if begun is not None:
        phases.append(("start", begun.dispatched, begun.running or ended.at))
        if begun.running is not None:
            phases.append(("run", begun.running, ended.at))
    failed = ended.error is not None
    attributes: dict[str, str | int] = {
        "forge.job.id": ended.job,
        "forge.job.kind": about.kind,
        "forge.repository": about.repository,
        "forge.attempt": number,
        "forge.outcome": ended.state,
    }
    if ended.error is not None:
        attributes["error.type"] = ended.error
    return Span(
        f"job {about.kind}",
        own,
        about.parent,
        start,
        max(start, ended.at),
        attributes,
        ended.error if failed else None,
        tuple(
            Span(
                name,
                TraceParent(
                    own.trace, span_id(f"{ended.job}.{number}.{name}"), own.flags
                ),
                own,
                begin,
                max(begin, end),
            )
            for name, begin, end in phases
        ),
    )
