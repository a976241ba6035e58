"""Retries: jobs made anew from some that have ended, as one chain or not at all.

A retry is a new job that does what the old one was to do. What ran after a job that is
retried too runs after its retry.
"""

from __future__ import annotations

import json
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import structs

from forge_actors.domain.accepting import accepted_event
from forge_actors.domain.capacity import tokens_for
from forge_actors.domain.changes import JobAdded, JobDetails
from forge_actors.domain.errors import Refused
from forge_actors.domain.inputs import moved_on
from forge_actors.domain.isolation import inherited, may_be_isolated
from forge_actors.domain.jobs import TERMINAL
from forge_actors.domain.requests import Retried
from forge_actors.domain.verifying import asked_for
from forge_actors.edges.sqlite.rows import job_from, spec_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.claims import Claim
    from forge_actors.domain.jobs import Job, JobSpec, State
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.authorities import Allow, Authorities
    from forge_actors.runtime.ids import IdSource

_labels = msgspec.json.Decoder(tuple[str, ...])


class Old(NamedTuple):
    """A job that is to be retried, and its repository's name."""

    job: Job
    spec: JobSpec
    details: JobDetails
    repo: str


class Retries:
    """The retries of some jobs, decided in one go, without a pause in between."""

    def __init__(
        self,
        store: SqliteStore,
        ids: IdSource,
        *,
        now: float,
        origin: str,
        authorities: Authorities,
        allow: Allow | None = None,
    ) -> None:
        self._store = store
        self._ids = ids
        self._now = now
        self._origin = origin
        self._authorities = authorities
        self._allow = allow
        #: The jobs that are retried, and what each becomes.
        self.made: dict[str, Retried] = {}
        self.changes: list[JobAdded] = []
        self._uniques: dict[tuple[str, str], str] = {}
        #: Of jobs that were retried before, the newest retry. Read when it is needed.
        self._earlier: dict[str, str] | None = None

    def make(self, olds: Sequence[Old]) -> None:
        """Make them all, each after those that it runs after.

        Raises:
            Refused: one has not ended, or runs after what did not succeed.
        """
        by_id = {old.job.id: old for old in olds}
        for old in olds:
            if old.job.state not in TERMINAL:
                raise Refused(
                    f"job {old.job.id} has not ended, it is {old.job.state}: only"
                    " what has ended can be retried"
                )
        order = TopologicalSorter(
            {old.job.id: [i for i in old.job.after if i in by_id] for old in olds}
        )
        for job_id in order.static_order():
            self.made[job_id] = self._retry(by_id[job_id])

    def _retry(self, old: Old) -> Retried:
        old = unverified(old)
        unique = old.details.unique
        key = (old.job.repo, unique or "")
        if unique is not None:
            rows = self._store.read_pending("by_unique", *key)
            living = str(rows[0][0]) if rows else self._uniques.get(key)
            if living is not None:
                return Retried(living, old.job.id, existing=True)
        targets = {one: self._target(old, one) for one in old.job.after}
        after = tuple(dict.fromkeys(targets.values()))
        new = self._ids.make(self._now)
        job = unbegun(old.job, new, self._now)
        job.claims = _claims(old, new)
        job.after = after
        spec, job.state = self._authorities.made_again(
            old, new, self._origin, met=self._met(after), allow=self._allow
        )
        if spec.inputs:
            spec = structs.replace(spec, inputs=moved_on(spec.inputs, targets))
        details = structs.replace(
            old.details,
            created_at=self._now,
            origin=self._origin,
            retry_of=old.job.id,
        )
        event = accepted_event(job, details, spec.authority)
        self.changes.append(JobAdded(job, spec, details, event))
        if unique is not None:
            self._uniques[key] = job.id
        return Retried(job.id, old.job.id)

    def _target(self, old: Old, dependency: str) -> str:
        """The job that a retry runs after in place of what the old one ran after."""
        found, state = dependency, self._state(dependency)
        while found not in self.made and state in TERMINAL and state != "succeeded":
            newer = self._newest_retry(found)
            if newer is None:
                raise Refused(
                    f"job {old.job.id} runs after {found}, which is {state}:"
                    f" retry {found} too"
                )
            found, state = newer, self._state(newer)
        return self.made[found].id if found in self.made else found

    def _met(self, after: Sequence[str]) -> bool:
        return all(self._state(job) == "succeeded" for job in after)

    def _state(self, job: str) -> State | None:
        """How far a job is; None for one that is made here."""
        rows = self._store.read_pending("job_state", job)
        return rows[0][0] if rows else None

    def _newest_retry(self, job: str) -> str | None:
        if self._earlier is None:
            self._earlier = dict(self._store.read_pending("newest_retries"))
        return self._earlier.get(job)


def unbegun(job: Job, job_id: str, now: float) -> Job:
    """The same job under a new id, waiting from now on, and after no other one."""
    return structs.replace(
        job,
        id=job_id,
        state="queued",
        after=(),
        attempt=0,
        fence=None,
        queued_at=now,
        started_at=None,
        held_at=None,
    )


def unverified(old: Old) -> Old:
    """The same for a job whose work is still to be done, and to be checked."""
    verify = old.spec.verify
    if verify is None:
        return old
    spec = structs.replace(old.spec, verify=asked_for(verify))
    tokens = tokens_for(old.job.kind, old.details.provider)
    job = structs.replace(old.job, verify=spec.verify, tokens=tokens)
    job.isolatable = may_be_isolated(job, spec)
    return old._replace(job=job, spec=spec)


def _claims(old: Old, new: str) -> tuple[Claim, ...]:
    """Those of a retry: a worktree of its own, unless it goes on in that of others."""
    isolation = old.spec.isolation
    if isolation is not None and isolation.of is not None:
        return old.job.claims
    return inherited(old.job.claims, old.job.id, new)


def read_old(store: SqliteStore, ids: Sequence[str]) -> list[Old]:
    """The jobs with these ids, in their order, each once."""
    rows = {row[0]: row for row in store.read("retry_jobs", json.dumps(ids))}
    return [_old(rows[job_id]) for job_id in dict.fromkeys(ids)]


def _old(row: tuple[object, ...]) -> Old:
    """A row of the query `retry_jobs`."""
    job = job_from(str(row[16]), (*row[:16], 0))
    name, labels, unique, created_at, origin, repo = row[17:]
    details = msgspec.convert(
        {
            "created_at": created_at,
            "origin": origin,
            "name": name,
            "labels": _labels.decode(str(labels)),
            "provider": row[4],
            "unique": unique,
        },
        JobDetails,
    )
    return Old(job, spec_from((row[15],)), details, str(repo))
