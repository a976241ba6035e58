"""Again: jobs made from others that have ended, to do the same or to go on with it.

A job that goes on has the session and the worktree of the one before. Both are claimed,
and whether another job has the session is looked up and saved in one go, so that no two
jobs ever speak in one session at the same time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from forge_actors.domain.accepting import accepted_event
from forge_actors.domain.changes import JobAdded
from forge_actors.domain.claims import strongest
from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.domain.isolation import may_be_isolated, own_session
from forge_actors.domain.jobs import TERMINAL
from forge_actors.domain.requests import MAX_BATCH, Continued
from forge_actors.domain.verifying import report_of
from forge_actors.runtime.old_places import OldPlaces
from forge_actors.runtime.retries import Retries, read_old, unbegun, unverified
from forge_actors.runtime.views import receipt_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from forge_actors.domain.agents import AgentReport, Budget
    from forge_actors.domain.jobs import AgentSpec
    from forge_actors.domain.ports import Clock
    from forge_actors.domain.requests import Retried
    from forge_actors.domain.worktrees import Worktree
    from forge_actors.edges.sqlite.move import Move
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.agents import Agents
    from forge_actors.runtime.authorities import Allow, Authorities
    from forge_actors.runtime.ids import IdSource
    from forge_actors.runtime.registry import Registry
    from forge_actors.runtime.retries import Old


class NoSession(Refused):
    """A job has left no session with which another one could go on."""


class Given(NamedTuple):
    """What a follow-up of a workflow is given besides what it is asked."""

    request_id: str
    name: str | None
    #: More of its environment, the seconds it may wait and run, and what its agent may
    #: use.
    env: Mapping[str, str]
    waits: float | None
    seconds: float | None
    budget: Budget | None


class Again:
    """Makes them. One for each runtime."""

    def __init__(
        self,
        store: SqliteStore,
        registry: Registry,
        clock: Clock,
        ids: IdSource,
        agents: Agents | None,
        save: Callable[[Sequence[JobAdded]], Move],
        check_provider: Callable[[str | None, str], None],
        authorities: Callable[[], Authorities],
    ) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        self._ids = ids
        self._agents = agents
        self._save = save
        self._check_provider = check_provider
        self._authorities = authorities

    async def retry(
        self,
        ids: Sequence[str],
        origin: str,
        *,
        resume: bool = False,
        allow: Allow | None = None,
    ) -> list[Retried]:
        """See `Control.retry`; these are whole ids."""
        if len(ids) > MAX_BATCH:
            raise InvalidInput("jobs", f"are more than {MAX_BATCH}")
        olds = self._olds(ids)
        if resume:
            olds = [self._another_try(old) for old in olds]
        now = self._clock.now()
        retries = Retries(
            self._store,
            self._ids,
            now=now,
            origin=origin,
            authorities=self._authorities(),
            allow=allow,
        )
        retries.make(olds)
        if retries.changes:
            await self._save(retries.changes).wait()
        return [retries.made[job_id] for job_id in ids]

    async def follow(
        self, job: str, prompt: str, origin: str, given: Given | None = None
    ) -> Continued:
        """See `Control.continue_job`; this is a whole id, and its worktree is there.

        Raises:
            NoSession: there is none to go on with.
        """
        [old] = self._olds([job])
        session, agents, agent = self._session(old)
        digest = agents.prompt(prompt)
        said = self._said(old)
        anew = agents.sessions.follow_up(prompt, agent.prompt, said)
        old = unverified(_resumed(old, session, digest, anew))
        if given is not None:
            old = _with(old, given)
        now = self._clock.now()
        job_id = self._ids.make(now)
        made = unbegun(old.job, job_id, now)
        details = structs.replace(
            old.details, created_at=now, origin=origin, name=None, unique=None
        )
        if given is not None:
            # Asked for again it is the same one, whatever came of it.
            details = structs.replace(
                details, name=given.name, request_id=given.request_id, digest=digest
            )
        spec, made.state = self._authorities().made_again(old, job_id, origin)
        event = accepted_event(made, details, spec.authority)
        await self._save([JobAdded(made, spec, details, event)]).wait()
        return Continued(job_id, job)

    def worktree(self, job: str) -> Worktree | None:
        """The worktree in which a job would be gone on with; None: in its checkout.

        Raises:
            Refused: nobody can go on with that job now.
        """
        [old] = self._olds([job])
        self._session(old)
        if old.spec.isolation is None:
            return None
        owner = old.spec.isolation.of or job
        known = self._store.worktree(owner)
        if known is None or known.state not in ("ready", "removed"):
            state = "not known any more" if known is None else known.state
            raise Refused(
                f"job {job} cannot be gone on with: its worktree {owner} is {state};"
                " submit a new job instead"
            )
        return known

    def _olds(self, ids: Sequence[str]) -> list[Old]:
        olds = []
        places = OldPlaces(self._store)
        for old in read_old(self._store, ids):
            if (repo := self._registry.get(old.job.repo)) is None:
                raise Refused(
                    f"job {old.job.id} cannot be retried: its repository"
                    f" {old.repo!r} was removed"
                )
            self._check_provider(old.details.provider, f"{old.job.id}.")
            olds.append(places.followed(old, repo))
        return olds

    def _session(self, old: Old) -> tuple[str, Agents, AgentSpec]:
        """The session that a job has left, and which no other job goes on with."""
        job, spec = old.job, old.spec
        if spec.agent is None or self._agents is None:
            raise NoSession(
                f"job {job.id} has no agent, so there is no session to go on with;"
                " forge-actors retry does it again"
            )
        if job.state not in TERMINAL:
            raise Refused(
                f"job {job.id} has not ended, it is {job.state}: go on with it when it"
                f" has (forge-actors wait {job.id})"
            )
        told = self._report(old)
        session = self._agents.session(spec, job.id, job.attempt)
        if session is None and told is not None and not told.session_gone:
            session = told.session
        session = session or spec.agent.session
        if session is None:
            why = "it never ran" if job.attempt == 0 else "its program began none"
            raise NoSession(
                f"job {job.id} has no session to go on with: {why};"
                " forge-actors retry does it again"
            )
        for (user,) in self._store.read_pending("session_users", session):
            raise Refused(
                f"job {user} goes on with the session of job {job.id} and has not"
                f" ended: go on with {user} when it has"
            )
        return session, self._agents, spec.agent

    def _said(self, old: Old) -> str:
        told = self._report(old)
        return "" if told is None else told.text

    def _report(self, old: Old) -> AgentReport | None:
        """What the agent of a job told in the end."""
        receipt = receipt_of(self._store.read("view_job", old.job.id)[0])
        return report_of(old.spec.verify, None if receipt is None else receipt.agent)

    def _another_try(self, old: Old) -> Old:
        """The job to be made anew, in the session that it has left."""
        self.worktree(old.job.id)
        session, agents, agent = self._session(old)
        words = agents.sessions.another_try(agent.prompt, self._said(old))
        return _resumed(old, session, words[0], agent.anew or words[1])


def _with(old: Old, given: Given) -> Old:
    spec = old.spec
    assert spec.agent is not None, "it is the job of one"
    return old._replace(
        spec=structs.replace(
            spec,
            env={**spec.env, **given.env},
            budgets=structs.replace(
                spec.budgets, queue=given.waits, execution=given.seconds
            ),
            agent=structs.replace(spec.agent, budget=given.budget),
        )
    )


def _resumed(old: Old, session: str, prompt: str, anew: str) -> Old:
    """What goes on with a job: its session, and the folder where it worked."""
    job, spec = old.job, old.spec
    assert spec.agent is not None, "it is the job of one"
    agent = structs.replace(
        spec.agent, prompt=prompt, continues=job.id, session=session, anew=anew
    )
    isolation = spec.isolation
    if isolation is not None:
        of = isolation.of or job.id
        isolation = structs.replace(isolation, of=of, instead_of=())
    # A program may know a session only in the folder where it was begun.
    in_checkout = isolation is None
    spec = structs.replace(
        spec, agent=agent, isolation=isolation, in_checkout=in_checkout
    )
    claims = strongest([*job.claims, own_session(session)])
    job = structs.replace(job, claims=claims)
    job.isolatable = may_be_isolated(job, spec)
    return old._replace(job=job, spec=spec)
