"""Rows of the store as values of the domain."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from forge_actors.domain.accounts import Account
from forge_actors.domain.capacity import CHECK_TOKENS, tokens_for
from forge_actors.domain.claims import Claim
from forge_actors.domain.isolation import may_be_isolated
from forge_actors.domain.jobs import Job, JobSpec
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.poison import Poison
from forge_actors.domain.quarantine import Quarantine
from forge_actors.domain.scopes import Pause
from forge_actors.domain.worktrees import Worktree

_names = msgspec.json.Decoder(tuple[str, ...])
_spec = msgspec.json.Decoder(JobSpec)
_processes = msgspec.json.Decoder(tuple[ProcessIdentity, ...])
_identity = msgspec.json.Decoder(ProcessIdentity)
NO_NAMES = "[]"
#: Most jobs of a queue have the claims and the tokens of many others: told apart by
#: their text, they need not be built for each.
claims_from = lru_cache(maxsize=1024)(msgspec.json.Decoder(tuple[Claim, ...]).decode)
_tokens = lru_cache(maxsize=64)(tokens_for)


def spec_from(row: tuple[Any, ...]) -> JobSpec:
    """A row of the query `job_spec`."""
    return _spec.decode(row[0])


def job_from(repo: str, row: tuple[Any, ...]) -> Job:
    """A row of the query `load_jobs`."""
    (job_id, kind, state, priority, provider, claims, after, replay) = row[:8]
    (attempt, max_attempts, fence, queued_at, started_at, held_at) = row[8:14]
    retry_at, spec, refused = row[14:]
    details = _spec.decode(spec)
    job = Job(
        id=job_id,
        repo=repo,
        kind=kind,
        state=state,
        priority=priority,
        claims=claims_from(claims),
        tokens=_tokens(kind, provider),
        after=() if after == NO_NAMES else _names.decode(after),
        replay=replay,
        attempt=attempt,
        max_attempts=max_attempts,
        fence=fence,
        queued_at=queued_at,
        started_at=started_at,
        held_at=held_at,
        retry_at=retry_at,
        refused=refused,
        admission_budget=details.budgets.admission,
        exit_attempts=details.exit_attempts,
        queue_budget=details.budgets.queue,
        work=details.work,
    )
    job.isolatable = may_be_isolated(job, details)
    if details.verify is not None:
        job.verify = details.verify
        if job.checking:
            job.tokens = CHECK_TOKENS
    if details.agent is not None:
        job.agent, job.choices = details.agent.name, details.agent.choices
    return job


def launched_from(row: tuple[Any, ...]) -> tuple[int, ProcessIdentity | None]:
    """A row of the query `job_launched`: the attempt, and its process if known."""
    attempt, identity = row
    return attempt, None if identity is None else _identity.decode(identity)


def pause_from(row: tuple[Any, ...]) -> Pause:
    """A row of the query `pauses`."""
    scope, since, jobs = row
    return Pause(scope, since, bool(jobs))


def account_from(row: tuple[Any, ...]) -> Account:
    """A row of the query `accounts`."""
    provider, is_open, since, reason, job, retry_at, stated, tries, detail = row
    return Account(
        provider,
        open=bool(is_open),
        since=since,
        reason=reason,
        job=job,
        retry_at=retry_at,
        stated=bool(stated),
        tries=tries,
        detail=detail,
    )


def quarantine_from(row: tuple[Any, ...]) -> Quarantine:
    """A row of the query `quarantines`."""
    job, repo, attempt, fence, claims, remaining, reason, since = row
    left = _processes.decode(remaining)
    return Quarantine(
        job, repo, attempt, fence, claims_from(claims), left, reason, since
    )


def poison_from(row: tuple[Any, ...]) -> Poison:
    """A row of the query `poisons`."""
    return Poison(*row)


def worktree_from(row: tuple[Any, ...]) -> Worktree:
    """A row of the query `worktree` or `worktrees`."""
    (worktree, repo, path, branch, made_at, state, base, commit) = row[:8]
    kept, reason, removed_at = row[8:]
    return Worktree(
        id=worktree,
        repo=repo,
        path=path,
        branch=branch,
        made_at=made_at,
        state=state,
        base=base,
        base_commit=commit,
        kept=bool(kept),
        reason=reason,
        removed_at=removed_at,
    )
