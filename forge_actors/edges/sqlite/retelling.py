"""The history of a restored store: told anew, so that it follows from itself again.

What came between a backup and its restore is told in part, or not at all. So the event
that says so is followed by all that there is: whoever folds events begins again there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from forge_actors.domain.capacity import tokens_for
from forge_actors.domain.events import RESTORED, Event
from forge_actors.domain.jobs import RESERVED, TERMINAL
from forge_actors.domain.priority import PRIORITIES
from forge_actors.domain.scopes import repository_of
from forge_actors.domain.steering import ASKED
from forge_actors.edges.sqlite import history
from forge_actors.edges.sqlite.statements import queries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import apsw

#: Numbers left out where nobody knows how far the lost history had come, so that no
#: reader takes a new event for one it has seen.
UNKNOWN_EVENTS = 1_000_000

_list = msgspec.json.Decoder(list[object]).decode

_REPOSITORIES = """\
SELECT id, name, path, enabled FROM repository WHERE removed_at IS NULL ORDER BY id"""
_JOBS = """\
SELECT id, repo, state, kind, priority, provider, claims, after, name, labels, origin,
    retry_of, attempt, fence, held_at, error,
    CASE WHEN json_valid(CAST(spec AS TEXT))
        THEN json_extract(CAST(spec AS TEXT), '$.work') END
FROM job WHERE finished_at IS NULL OR finished_at = ?
ORDER BY repo, coalesce(fence, 0), id"""
_PAUSES = "SELECT scope, jobs FROM pause ORDER BY scope"
_CLOSED = """\
SELECT provider, reason, retry_at, stated, job FROM account WHERE NOT open
ORDER BY provider"""


_POLICY = "SELECT mode, work, revision FROM policy WHERE mode <> 'normal'"


def retell(
    db: apsw.Connection,
    now: float,
    data: dict[str, object],
    *,
    after: int = 0,
    whole: bool = True,
    disabled: Mapping[str, str] | None = None,
) -> None:
    """Write that the store was restored, with this `data`, and all there is in it:
    repositories, pauses, jobs that have not ended, and those that ended with this.

    `after` is the last number that was given; not `whole`, there were more. `disabled`
    says why repositories are, by their ids.
    """
    last = max(after, history.last(db, queries()))
    first = last + 1 + (0 if whole else UNKNOWN_EVENTS)
    events = [
        Event("store_restored", now, data=data),
        *_repositories(db, now, disabled or {}),
    ]
    events += _jobs(db, now)
    history.append(db, queries(), first, events)


def _repositories(
    db: apsw.Connection, now: float, disabled: Mapping[str, str]
) -> Iterator[Event]:
    for repo, name, path, enabled in db.execute(_REPOSITORIES):
        told = {"name": name, "path": path}
        yield Event("repository_added", now, repo, data=told)
        if not enabled:
            told = {"name": name, "reason": disabled.get(repo, RESTORED)}
            yield Event("repository_disabled", now, repo, data=told)
    for scope, jobs in db.execute(_PAUSES):
        told = {"scope": scope, "jobs": bool(jobs)}
        yield Event("paused", now, repository_of(scope), data=told)
    for provider, reason, until, stated, job in db.execute(_CLOSED):
        told = {"provider": provider, "reason": reason, "until": until}
        told |= {"stated": bool(stated), "by": job}
        yield Event("provider_closed", now, data=told)
    for mode, work, revision in db.execute(_POLICY):
        told = {"mode": mode, "before": "normal", "revision": revision}
        yield Event("policy_changed", now, data=told | ({"work": work} if work else {}))


def _jobs(db: apsw.Connection, now: float) -> Iterator[Event]:
    for values in db.execute(_JOBS, (now,)):
        yield from _job(now, *values)


def _job(
    now: float,
    job: str,
    repo: str,
    state: str,
    kind: Any,
    priority: int,
    provider: str | None,
    claims: str,
    after: str,
    name: str | None,
    labels: str,
    origin: str,
    retry_of: str | None,
    attempt: int,
    fence: int,
    held_at: float | None,
    error: str | None,
    work: str | None,
) -> Iterator[Event]:
    facts = {
        "claims": _list(claims),
        "after": _list(after),
        "provider": provider,
        "name": name,
        "labels": _list(labels),
        "retry_of": retry_of,
        "work": work,
    }
    reserved = state in RESERVED
    data: dict[str, object] = {
        "reason": RESTORED,
        "origin": origin,
        "kind": kind,
        "priority": PRIORITIES[priority],
        **{field: value for field, value in facts.items() if value},
    }
    if before := attempt - reserved:
        data["attempt"] = before
    if state in TERMINAL and error is not None:
        data["error"] = msgspec.json.decode(error)
    yield Event(f"job_{'queued' if reserved else state}", now, repo, job, data)
    if reserved:
        taken = {
            "attempt": attempt,
            "fence": fence,
            "tokens": tokens_for(kind, provider),
            "claims": facts["claims"],
        }
        yield Event("job_dispatched", now, repo, job, taken)
    if held_at is not None:
        if reserved:
            yield Event("job_paused", now, repo, job, {"reason": ASKED})
        else:
            yield Event("job_held", now, repo, job)
