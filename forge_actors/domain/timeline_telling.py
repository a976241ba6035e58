"""A record of events and what a store knows of their jobs, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, structs

from forge_actors.domain.jobs import TERMINAL
from forge_actors.domain.timeline import (
    Depth,
    PastFacts,
    Run,
    Timeline,
    Wait,
    shared_out,
)
from forge_actors.domain.timeline_record import Record, tokens_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Known(Struct, frozen=True):
    """What is known beside the events."""

    #: Of jobs, by their ids.
    facts: Mapping[str, PastFacts]
    #: The names of repositories, by their ids.
    repositories: Mapping[str, str]
    #: A moment as readers see it.
    moment: Callable[[float], str]
    #: Whether the window ends now.
    live: bool
    #: The moment from which on all events were read.
    read_from: float

    def name(self, repo: str) -> str:
        return self.repositories.get(repo, repo)


def timeline(record: Record, known: Known) -> Timeline:
    """The timeline of a record that was closed."""
    runs = [_run(run, record.since, known) for run in record.runs]
    waits = [_wait(wait, known) for wait in record.waits]
    depths = [
        Depth(known.name(repo), reason, gauge.averages())
        for (repo, reason), gauge in sorted(record.gauges.items())
    ]
    bands = [
        structs.replace(band, repo=band.repo and known.name(band.repo))
        for band in record.bands.told()
        if band.repo is None or record.repos is None or band.repo in record.repos
    ]
    repos = {run.repo for run in runs} | {depth.repo for depth in depths}
    complete_from = max(record.complete_from, known.read_from - record.since, 0.0)
    return Timeline(
        since=known.moment(record.since),
        until=known.moment(record.until),
        epoch=round(record.since, 3),
        seconds=round(record.seconds, 3),
        live=known.live,
        repositories=sorted(repos),
        runs=shared_out(runs),
        waits=waits,
        depths=depths,
        bands=bands,
        limits=record.limits,
        runs_left_out=record.runs_left_out,
        waits_left_out=record.waits_left_out,
        complete_from=round(complete_from, 3),
    )


def _run(run: Run, since: float, known: Known) -> Run:
    facts = known.facts.get(run.job)
    if facts is not None:
        run = structs.replace(
            run,
            kind=facts.kind,
            name=facts.name,
            tokens=run.tokens or tokens_of(facts),
        )
        if facts.attempt == run.attempt:
            run = _last_attempt(run, facts, since)
    ended = run.ended
    if ended is not None and run.began is not None:
        ended = max(ended, run.began)
    return structs.replace(
        run,
        repo=known.name(run.repo),
        began=_rounded(run.began),
        started=_rounded(run.started),
        ended=_rounded(ended),
        waited=_rounded(run.waited),
        suspended=tuple((round(a, 3), _rounded(b)) for a, b in run.suspended),
    )


def _last_attempt(run: Run, facts: PastFacts, since: float) -> Run:
    """The same with what the store knows better of the last attempt of a job."""
    began, started, ended, waited = run.began, run.started, run.ended, run.waited
    if facts.dispatched_at is not None:
        began = facts.dispatched_at - since if began is None else began
        if waited is None:
            waited = max(facts.dispatched_at - facts.queued_at, 0.0)
    if facts.started_at is not None:
        started = facts.started_at - since
    if ended is not None and facts.finished_at is not None:
        # The event is of when somebody heard of it.
        ended = min(ended, facts.finished_at - since)
    code = facts.exit_code if run.outcome in TERMINAL else None
    return structs.replace(
        run, began=began, started=started, ended=ended, waited=waited, exit_code=code
    )


def _wait(wait: Wait, known: Known) -> Wait:
    facts = known.facts.get(wait.job)
    return structs.replace(
        wait,
        repo=known.name(wait.repo),
        kind=wait.kind if facts is None else facts.kind,
        name=wait.name if facts is None else facts.name,
        began=_rounded(wait.began),
        ended=_rounded(wait.ended),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
