"""Authorities: what a job that is submitted may do to the outside."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.effects import (
    EFFECTS,
    OF_JOB,
    Approval,
    Submitter,
    again,
    allowed,
    approved,
    authority_of,
    beyond,
    held_back,
    in_order,
    is_automated,
    job_of,
)
from forge_actors.domain.errors import Forbidden, InvalidInput, Refused
from forge_actors.domain.job_queue import ASKING
from forge_actors.domain.requests import unknown_word
from forge_actors.edges.sqlite.rows import spec_from

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.domain.effects import Authority, Effect
    from forge_actors.domain.jobs import JobSpec, State
    from forge_actors.domain.requests import JobRequest
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.retries import Old

    #: What a person allows the job with this id.
    Allow = Callable[[str], Approval]

#: Characters that say how somebody approved.
MAX_HOW = 40


class Authorities:
    """Finds them for the jobs of one request, each job that submits only once."""

    def __init__(self, store: SqliteStore, *, attended: bool) -> None:
        self._store = store
        #: There may be a person who allows something.
        self._attended = attended
        self._submitters: dict[str, Submitter | None] = {}

    def of(self, request: JobRequest, prefix: str) -> Authority | None:
        """That of a job to be made.

        Raises:
            InvalidInput: an effect is unknown. Refused: a job allows more than it may.
        """
        if speaks_of_nothing(request):
            return None
        declared = effects_of(request.effects, f"{prefix}effects")
        authorised = effects_of(request.authorised, f"{prefix}authorised")
        submitter = self.submitter(_asks(request))
        if submitter is not None and (more := beyond(authorised, submitter)):
            raise Refused(
                f"{prefix}authorised: job {submitter.job} is not allowed {_named(more)}"
                " itself, so it can allow no other job that"
            )
        authority = authority_of(
            request.origin, declared, authorised, submitter, request.argv
        )
        if authorised and (authority is None or not authority.automated):
            raise Refused(
                f"{prefix}authorised: is for jobs that no person asks for; this one may"
                " do what its command does"
            )
        return authority

    def work(self, request: JobRequest) -> str | None:
        """What a job to be made is of: what the job that submits it is of."""
        if request.work is not None:
            return request.work
        if request.parent is None and not request.origin.startswith(OF_JOB):
            return None
        submitter = self.submitter(_asks(request))
        return None if submitter is None else submitter.work

    def at_most(self, job: str | None, may: Sequence[Effect]) -> list[Effect]:
        """What of what a person allows beforehand a job may use; all, if none asks."""
        submitter = self.submitter(job)
        if submitter is None:
            return list(may)
        above = allowed(submitter.authority, submitter.job)
        return [effect for effect in may if above is None or effect in above]

    def made_again(
        self,
        old: Old,
        job: str,
        origin: str,
        *,
        met: bool = True,
        allow: Allow | None = None,
    ) -> tuple[JobSpec, State]:
        """What a job made from another one needs, and the state that it begins in.

        Raises:
            Refused: a job would allow it something.
        """
        submitter = self.submitter(job_of(origin))
        if allow is not None and submitter is not None:
            raise Refused(
                f"job {submitter.job} can allow no job anything: only a person can"
            )
        spec = old.spec
        authority = again(spec.authority, old.job.id, submitter, spec.argv, origin)
        if allow is not None:
            authority = approved(authority, allow(job))
        state: State = first_state(asks=self.waits(authority, job), met=met)
        return structs.replace(spec, authority=authority), state

    def waits(self, authority: Authority | None, job: str, prefix: str = "") -> bool:
        """Whether a new job waits for a person first.

        Raises:
            Forbidden: it would, and nobody could allow it.
        """
        lacks = held_back(authority, job)
        if lacks and not self._attended:
            raise Forbidden(
                f"{prefix}effects: nobody has allowed {_named(lacks)}, and nobody can"
                " while no service runs; submit it to one"
            )
        return bool(lacks)

    def submitter(self, job: str | None) -> Submitter | None:
        if job is None:
            return None
        if job not in self._submitters:
            rows = self._store.read_pending("job_spec", job)
            spec = spec_from(rows[0]) if rows else None
            self._submitters[job] = (
                None if spec is None else Submitter(job, spec.authority, spec.work)
            )
        return self._submitters[job]


def _asks(request: JobRequest) -> str | None:
    """The job that submits it."""
    parent = request.parent
    return job_of(request.origin) if parent is None else parent.job


def speaks_of_nothing(request: JobRequest) -> bool:
    """It is a person's that declares nothing, as nearly all are."""
    told = request.effects or request.authorised or request.parent is not None
    origin = request.origin
    return not (told or is_automated(origin) or origin.startswith(OF_JOB))


def first_state(*, asks: bool, met: bool) -> State:
    """Where a new job begins: it asks a person, or the jobs before it have ended."""
    if asks:
        return ASKING
    return "queued" if met else "waiting_for_dependency"


def allow(effects: tuple[Effect, ...], how: str, now: float) -> Allow:
    """What a person allows now; only the owner of a home reaches its service.

    Raises:
        InvalidInput: `how` says nothing.
    """
    if not 0 < len(how) <= MAX_HOW or not how.isprintable():
        raise InvalidInput("how", f"has to have 1 to {MAX_HOW} printable characters")
    try:
        who = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        who = f"uid {os.getuid()}"
    return lambda job: Approval(job, effects, who, how, now)


def effects_of(words: Sequence[str], field: str) -> tuple[Effect, ...]:
    """The effects that words name.

    Raises:
        InvalidInput: one is none.
    """
    for word in words:
        if word not in EFFECTS:
            raise unknown_word(field, word, EFFECTS)
    return in_order(words)


def _named(effects: Sequence[Effect]) -> str:
    return " and ".join(effects)
