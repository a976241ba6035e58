"""How a timeline follows from events: a fold over those around its window.

    record = Record(since, until, limit=2000)
    for event in events:  # oldest first
        record.apply(event)
    for facts in those_that_have_not_ended:
        record.stood(facts)

Then `timeline_telling` puts it together with what a store knows of `record.jobs()`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from forge_actors.domain.capacity import tokens_for
from forge_actors.domain.events import ACCEPTED, RESTORED
from forge_actors.domain.jobs import RESERVED, TERMINAL, WAITING
from forge_actors.domain.steering import ASKED
from forge_actors.domain.timeline import (
    MAX_SUSPENDED,
    UNKNOWN,
    Gauge,
    PastFacts,
    Run,
    Wait,
)
from forge_actors.domain.timeline_bands import Bands

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from forge_actors.domain.events import Event

HELD = "held"
QUEUED = "queued"


class _Job(Struct):
    """A job that has not ended, as far as the events have told of it."""

    id: str
    repo: str
    kind: str | None = None
    name: str | None = None
    provider: str | None = None
    #: The attempt that runs; None: it waits.
    attempt: int | None = None
    tokens: tuple[str, ...] = ()
    #: When what it does now began; None: before the first event.
    began: float | None = None
    started: float | None = None
    #: Since when it waits for its next attempt, and how long it did for this one.
    waits_since: float | None = None
    waited: float | None = None
    state: str = QUEUED
    held: bool = False
    suspended: list[tuple[float, float | None]] = []


class Record:
    """What the events told so far. Keeps the last `limit` of attempts and of waits."""

    def __init__(
        self,
        since: float,
        until: float,
        *,
        limit: int,
        repos: Container[str] | None = None,
    ) -> None:
        self.since, self.until, self.seconds = since, until, until - since
        self.repos = repos
        self._limit = limit
        self._active: dict[str, _Job] = {}
        self._ended: set[str] = set()
        self.runs: deque[Run] = deque(maxlen=limit)
        self.waits: deque[Wait] = deque(maxlen=limit)
        self.gauges: dict[tuple[str, str], Gauge] = {}
        self.runs_left_out = self.waits_left_out = 0
        self.complete_from = 0.0
        self.bands = Bands(since, until)
        self.limits: dict[str, int] = {}
        #: When the first event was: nothing is known of what was before.
        self._first: float | None = None

    def apply(self, event: Event) -> None:
        """Take the next event."""
        if self._first is None:
            self._first = event.at
        self.bands.apply(event)
        if event.kind == "limits" and (event.at < self.until or not self.limits):
            tokens = event.data.get("tokens")
            self.limits = tokens if isinstance(tokens, dict) else {}
        elif event.kind == "store_restored":
            for job in self._active.values():
                self._close(job, event.at, UNKNOWN, None)
            self._active.clear()
            self._ended.clear()
        if event.job is None or event.repo is None:
            return
        if self.repos is None or event.repo in self.repos:
            self._job(event, event.job, event.repo)

    def stood(self, facts: PastFacts) -> None:
        """A job that has not ended; nothing was told of it if no event was."""
        if facts.id in self._active or facts.id in self._ended:
            return
        if self.repos is not None and facts.repo not in self.repos:
            return
        job = _Job(facts.id, facts.repo, facts.kind, facts.name, facts.provider)
        job.state, job.held = facts.state, facts.held_at is not None
        job.began = facts.queued_at
        if facts.state in RESERVED:
            job.attempt, job.began = facts.attempt, facts.dispatched_at
            job.started = facts.started_at
            job.tokens = tokens_of(facts)
        self._active[facts.id] = job

    # -- jobs ------------------------------------------------------------------------

    def _job(self, event: Event, job_id: str, repo: str) -> None:
        word, data, at = event.kind.removeprefix("job_"), event.data, event.at
        if word not in RESERVED | TERMINAL | WAITING:
            if job_id in self._active:
                self._steer(self._active[job_id], word, data, at)
            return
        if data.get("reason") in (ACCEPTED, RESTORED):
            if word not in TERMINAL:
                self._active[job_id] = _accepted(event, job_id, repo, word)
            return
        if job_id in self._ended:
            return
        job = self._active.get(job_id)
        if job is None:
            # Its earlier events are before those that are read.
            job = _Job(job_id, repo)
            if word == "running" or (word != "dispatched" and _ran(word, data)):
                job.attempt = _number(data.get("attempt")) or 0
            self._active[job_id] = job
        self._move(job, word, data, at)

    def _move(self, job: _Job, word: str, data: Mapping[str, Any], at: float) -> None:
        if word == "running":
            job.started, job.state = at, word
            return
        if word == "dispatched":
            self._close(job, at, None, None)
            job.attempt = _number(data.get("attempt")) or 0
            if job.waits_since is not None:
                job.waited = round(max(at - job.waits_since, 0.0), 3)
            job.tokens = tuple(map(str, data.get("tokens") or ()))
            job.state = word
            return
        error = data.get("error")
        code = str(error.get("code")) if isinstance(error, dict) else None
        self._close(job, at, word, code)
        if job.attempt is not None:
            job.waits_since, job.waited = at, None
        job.state, job.attempt, job.tokens = word, None, ()
        if word in TERMINAL:
            del self._active[job.id]
            self._ended.add(job.id)

    def _steer(self, job: _Job, word: str, data: Mapping[str, Any], at: float) -> None:
        if word in ("held", "unheld"):
            if job.attempt is None:
                self._close(job, at, None, None)
            job.held = word == "held"
        elif word in ("paused", "resumed"):
            if data.get("reason") == ASKED:
                job.held = word == "paused"
            self._suspend(job, at, on=word == "paused" or "also" in data)
        elif word == "redirected":
            job.provider = str(data.get("provider"))

    def _suspend(self, job: _Job, at: float, *, on: bool) -> None:
        stands = bool(job.suspended) and job.suspended[-1][1] is None
        if on and not stands and len(job.suspended) < MAX_SUSPENDED:
            job.suspended = [*job.suspended, (at - self.since, None)]
        elif not on and stands:
            job.suspended[-1] = (job.suspended[-1][0], at - self.since)

    def _close(
        self, job: _Job, at: float, outcome: str | None, error: str | None
    ) -> None:
        """What the job did until now is over; what comes begins now."""
        if job.attempt is None:
            self._add_wait(job, at)
        else:
            self._add_run(job, at, outcome, error)
        job.began, job.started, job.suspended = at, None, []

    def _add_run(
        self, job: _Job, at: float | None, outcome: str | None, error: str | None
    ) -> None:
        ended = None if at is None else max(at, job.began or at) - self.since
        if ended is not None and ended <= 0:
            return
        if job.began is not None and job.began >= self.until:
            return
        if len(self.runs) == self._limit:
            self.runs_left_out += 1
            self.complete_from = max(self.complete_from, self.runs[0].ended or 0.0)
        over = tuple((a, ended if b is None else b) for a, b in job.suspended)
        self.runs.append(
            Run(
                job=job.id,
                attempt=job.attempt or 0,
                repo=job.repo,
                tokens=job.tokens,
                kind=job.kind,
                name=job.name,
                began=self._offset(job.began),
                started=self._offset(job.started),
                ended=ended,
                outcome=outcome,
                error=error,
                waited=job.waited,
                suspended=over,
            )
        )

    def _add_wait(self, job: _Job, at: float | None) -> None:
        ended = None if at is None else at - self.since
        began = self._offset(job.began)
        if (ended is not None and ended <= max(began or 0.0, 0.0)) or (
            began is not None and began >= self.seconds
        ):
            return
        reason = HELD if job.held else job.state.removeprefix("waiting_for_")
        gauge = self.gauges.get((job.repo, reason))
        if gauge is None:
            gauge = Gauge(self.seconds)
            self.gauges[job.repo, reason] = gauge
        known = self._offset(self._first) or 0.0
        gauge.add(
            known if began is None else began, self.seconds if ended is None else ended
        )
        if len(self.waits) == self._limit:
            self.waits_left_out += 1
        self.waits.append(
            Wait(job.id, job.repo, reason, job.kind, job.name, began, ended)
        )

    def _offset(self, at: float | None) -> float | None:
        return None if at is None else at - self.since

    # -- the end ---------------------------------------------------------------------

    def close(self) -> None:
        """No more events come: what is open stays so. The waiting ones first, as of
        many spans the last ones are kept."""
        for job in sorted(self._active.values(), key=lambda job: job.began or 0.0):
            if job.attempt is None:
                self._add_wait(job, None)
            else:
                self._add_run(job, None, None, None)
        self._active.clear()

    def jobs(self) -> set[str]:
        """The jobs that are told of; to be asked after `close`."""
        return {run.job for run in self.runs} | {wait.job for wait in self.waits}

    def repositories(self) -> set[str]:
        """The ids of those of which something is told."""
        ran = {run.repo for run in self.runs}
        # What waits is in a gauge too.
        return ran | {repo for repo, _ in self.gauges} | self.bands.repositories()


def _accepted(event: Event, job_id: str, repo: str, word: str) -> _Job:
    data = event.data
    return _Job(
        id=job_id,
        repo=repo,
        kind=_text(data.get("kind")),
        name=_text(data.get("name")),
        provider=_text(data.get("provider")),
        began=event.at,
        waits_since=event.at,
        state=word,
    )


def _ran(word: str, data: Mapping[str, Any]) -> bool:
    """Whether a job ran before it came into a state: then its attempt is told."""
    return bool(data.get("attempt")) and (word in TERMINAL or "reason" not in data)


def tokens_of(facts: PastFacts) -> tuple[str, ...]:
    return tokens_for(facts.kind, facts.provider)  # type: ignore[arg-type]


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
