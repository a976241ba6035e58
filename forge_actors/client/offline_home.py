"""What the store of a home that nothing serves says of the home itself.

The answers are the JSON of the HTTP routes, as far as they are known without a service.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import to_builtins

from forge_actors.client import offline
from forge_actors.domain.claims import Claim
from forge_actors.domain.errors import NotFound
from forge_actors.domain.holding import Holder, holding
from forge_actors.domain.jobs import RESERVED, STATES, TERMINAL, WAITING
from forge_actors.domain.looking import look_from
from forge_actors.domain.maintenance_view import (
    maintenance_view,
    run_from,
    visits_from,
)
from forge_actors.domain.projections import MAX_ATTENTION, attention_in, status_view
from forge_actors.domain.repositories import RepositoryDetails
from forge_actors.domain.requests import convert
from forge_actors.domain.trust import differs_from, stored_note, trusted_from

if TYPE_CHECKING:
    from forge_actors.domain.jobs import State
    from forge_actors.domain.looking import Look

Json = dict[str, Any]

_REPOSITORIES = """\
SELECT id, name, path, enabled, added_at, common_dir, fence, last_dispatch
FROM repository WHERE removed_at IS NULL ORDER BY name"""
_KEEPS = "SELECT 1 FROM sqlite_master WHERE name = 'quarantine'"
_KEPT = """\
SELECT quarantine.job, repository.name, attempt, claims, remaining, reason, since
FROM quarantine JOIN repository ON repository.id = repo
ORDER BY since, quarantine.job"""
_COUNTS = "SELECT repo, state, count(*) FROM job GROUP BY repo, state"
_RUNNING = """\
SELECT id FROM job WHERE repo = ? AND state IN ('dispatched', 'running') ORDER BY id"""

_LOOKED = "SELECT 1 FROM sqlite_master WHERE name = 'git_status'"
_LOOKS = """\
SELECT repo, sample, sampled_at, busy, fence, nonce, looked_at, dirty_nonce,
    dirty_reason, dirty_at, dirty_source, failures, error, retry_at
FROM git_status"""
_ATTENTION = """\
SELECT id, state, finished_at FROM job
WHERE repo = ? AND state IN ('human_attention_required', 'orphaned', 'stale')
ORDER BY id DESC LIMIT ?"""
_LEASES = """\
SELECT id, fence, claims FROM job
WHERE repo = ? AND state IN ('dispatched', 'running') ORDER BY id"""

_TRUSTS = "SELECT 1 FROM sqlite_master WHERE name = 'trust'"
_TRUSTED = "SELECT body, differs FROM trust WHERE repo = ?"

_HOLDER = "SELECT state, attempt, fence, repo, provider, held_at FROM job WHERE id = ?"
_CLEANS = "SELECT 1 FROM sqlite_master WHERE name = 'clean_class'"
_CLEAN_RUN = """\
SELECT began_at, ended_at, looked_at, runs, failures, in_a_row, removed, bytes, error,
    more, due_at
FROM clean_run"""
_CLEAN_VISITS = "SELECT name, visited_at, cursor, report, size FROM clean_class"
_SIZES = "SELECT name, size FROM clean_class WHERE size IS NOT NULL"
_SUSPENDED = "SELECT 1 FROM pause WHERE jobs AND scope IN (?, ?, ?)"


def status(home: str) -> Json:
    """What a `GET /v1/status` would say of a service that is not there."""
    from forge_actors.client import offline_inbox, offline_policy

    counts: dict[str, int] = {}
    for _, state, count in offline.rows(home, _COUNTS):
        counts[state] = counts.get(state, 0) + count
    known = "SELECT count(*) FROM repository WHERE removed_at IS NULL"
    return {
        "service": {"pid": None, "version": None, "started_at": None, "home": home},
        "ready": False,
        "readiness": {},
        "degraded": ["no service runs"],
        "capacity": {},
        "providers": {},
        "counts": {state: counts[state] for state in STATES if state in counts},
        "pressure": {},
        "policy": offline_policy.policy(home),
        "quarantined": quarantined(home),
        "inbox": {"items": offline_inbox.count(home)},
        "maintenance": _maintenance(home),
        "disk": {"home": _sizes(home)},
        "repositories": {"known": offline.rows(home, known)[0][0], "awake": 0},
    }


def _maintenance(home: str) -> Json:
    """What is saved of clean-ups; whether they are switched on, the settings say."""
    if not offline.rows(home, _CLEANS):
        return {}  # an older release wrote it
    run = run_from(offline.rows(home, _CLEAN_RUN))
    visits = dict(visits_from(offline.rows(home, _CLEAN_VISITS)))
    roots = offline.roots_of(home)
    return maintenance_view(None, run, visits, roots, offline.moment)


def _sizes(home: str) -> Json:
    """What it took by class when a clean-up measured it last."""
    if not offline.rows(home, _CLEANS):
        return {}  # an older release wrote it
    classes = dict(offline.rows(home, _SIZES))
    return {"bytes": sum(classes.values()), "classes": classes}


def quarantined(home: str) -> list[Json]:
    """The claims that are kept for what ended jobs left, oldest first."""
    found: list[Json] = []
    if not offline.rows(home, _KEEPS):
        return found  # an older release wrote it
    for job, repo, attempt, claims, left, reason, since in offline.rows(home, _KEPT):
        kept = convert(json.loads(claims), list[Claim])
        pids = [process["pid"] for process in json.loads(left)]
        found.append(
            {
                "job": job,
                "repo": repo,
                "attempt": attempt,
                "claims": [str(claim) for claim in kept],
                "pids": pids,
                "reason": reason,
                "since": offline.moment(since),
            }
        )
    return found


def why(home: str, selector: str) -> Json:
    """Why a job is where it is, as far as that was saved."""
    job = offline.job(home, selector)
    state, error = job["state"], job["error"]
    if error is not None:
        sentence = f"It is {state}: {error['message']} ({error['code']})."
    elif state in TERMINAL:
        sentence = f"It is {state}."
    elif state in WAITING:
        sentence = f"It is {state}, and nothing starts while no service runs."
    else:
        sentence = (
            f"It was {state} when the service ended. It may run on without one; the"
            " next service learns what became of it."
        )
    return {"job": job["id"], "state": state, "sentence": sentence, "waiting": None}


def check_fence(home: str, job: str, attempt: int, fence: int) -> Json:
    """Whether an attempt is the current one of its job, as far as that was saved.

    Raises:
        Unavailable, StoreFailed, StoreFromTheFuture: it cannot be known.
    """
    found = None
    for state, last, last_fence, repo, provider, held_at in offline.rows(
        home, _HOLDER, [job]
    ):
        scopes = ["all", f"repo:{repo}", f"provider:{provider}"]
        paused = held_at is not None or bool(offline.rows(home, _SUSPENDED, scopes))
        found = Holder(state, last, last_fence, paused=paused)
    answer: Json = to_builtins(holding(job, attempt, fence, found))
    return answer


def repositories(home: str) -> list[Json]:
    """The repositories, each with everything that one alone is shown with."""
    counts: dict[str, dict[State, int]] = {}
    for repo, state, count in offline.rows(home, _COUNTS):
        counts.setdefault(repo, {})[state] = count
    looks = _looks(home)
    return [
        _repository(home, row, counts.get(row[0], {}), looks.get(row[0]))
        for row in offline.rows(home, _REPOSITORIES)
    ]


def repository(home: str, name: str) -> Json:
    """One repository, by its name, its id or its path.

    Raises:
        NotFound: there is none.
    """
    for found in repositories(home):
        if name in (found["name"], found["id"], found["path"]):
            running = offline.rows(home, _RUNNING, [found["id"]])
            return {
                **found,
                "running_jobs": [row[0] for row in running],
                "leases": _leases(home, found["id"]),
                "attention_jobs": _attention(home, found["id"]),
                "trust": _trust(home, found["id"], found["name"]),
            }
    raise NotFound(f"no repository is called {name!r}")


def _trust(home: str, repo: str, name: str) -> Json | None:
    """What was trusted, and whether it was seen to differ; nothing looks now."""
    if not offline.rows(home, _TRUSTS):
        return None  # an older release wrote it
    for body, differs in offline.rows(home, _TRUSTED, [repo]):
        with suppress(
            msgspec.MsgspecError, RecursionError
        ):  # it has to be taken over anew
            seen = None if differs is None else differs_from(differs)
            told: Json = to_builtins(stored_note(name, trusted_from(body), seen))
            return told
    return None


def _looks(home: str) -> dict[str, Look]:
    """The looks at the repositories, by repository."""
    if not offline.rows(home, _LOOKED):
        return {}  # an older release wrote it
    return {row[0]: look_from(row) for row in offline.rows(home, _LOOKS)}


def _leases(home: str, repo: str) -> list[Json]:
    return [
        {
            "job": job,
            "fence": fence,
            "claims": [
                str(claim) for claim in convert(json.loads(claims), list[Claim])
            ],
        }
        for job, fence, claims in offline.rows(home, _LEASES, [repo])
    ]


def _attention(home: str, repo: str) -> list[Json]:
    return [
        {"id": job, "state": state, "finished_at": offline.moment(at)}
        for job, state, at in offline.rows(home, _ATTENTION, [repo, MAX_ATTENTION])
    ]


def _repository(
    home: str, row: tuple[Any, ...], counts: dict[State, int], look: Look | None
) -> Json:
    repo, name, path, enabled, added_at, common_dir, fence, last = row
    values = {
        "id": repo,
        "name": name,
        "path": path,
        "enabled": bool(enabled),
        "waiting": sum(count for state, count in counts.items() if state in WAITING),
        "running": sum(count for state, count in counts.items() if state in RESERVED),
        "added_at": offline.moment(added_at),
        "note": None,
        "common_dir": common_dir,
        "fence": fence,
        "last_dispatch": offline.moment(last or None),
        "counts": {state: counts[state] for state in STATES if state in counts},
        "running_jobs": [],
        "status": to_builtins(
            status_view(look, time.time(), fence, _moment, partial(offline.shown, home))
        ),
        "attention": attention_in(counts),
        "leases": [],
        "attention_jobs": [],
        "trust": None,
    }
    return {field: values[field] for field in RepositoryDetails.__struct_fields__}


def _moment(seconds: float) -> str:
    return str(offline.moment(seconds))
