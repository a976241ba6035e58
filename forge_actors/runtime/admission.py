"""Admission: from what a caller sent to jobs that are accepted, all of them or none.

Where something is to be unique the checks and the save happen in one go, without a
pause in between, so that two callers cannot both see the same request id or unique key
as unused. Other long batches let others have their turn while they are checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import trio
from msgspec import structs

from forge_actors.domain.accepting import accepted_event
from forge_actors.domain.capacity import tokens_for
from forge_actors.domain.changes import JobAdded, JobDelegated, JobDetails
from forge_actors.domain.errors import (
    FencingTokenStale,
    InvalidInput,
    NotFound,
    Refused,
    RequestTaken,
)
from forge_actors.domain.events import Event
from forge_actors.domain.idempotency import check_whole, keyed
from forge_actors.domain.isolation import may_be_isolated
from forge_actors.domain.jobs import RESERVED, Job
from forge_actors.domain.order import batch_order
from forge_actors.domain.requests import MAX_BATCH, Accepted, JobRequest, Parent
from forge_actors.domain.worktrees import Isolation
from forge_actors.runtime.again import Again
from forge_actors.runtime.authorities import Authorities, first_state
from forge_actors.runtime.candidates import as_candidate
from forge_actors.runtime.dependencies import check_dependencies, dependencies_of
from forge_actors.runtime.digests import digest_of
from forge_actors.runtime.entry import check_let_in
from forge_actors.runtime.fields import (
    claims_of,
    kind_of,
    labels_of,
    priority_of,
    replay_of,
    short,
    spec_of,
)
from forge_actors.runtime.inputs import inputs_of, with_dependencies
from forge_actors.runtime.worktree_owners import owner_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from forge_actors.domain.ports import Clock
    from forge_actors.domain.repositories import Checkout, Repository
    from forge_actors.edges.sqlite.move import Move
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.agents import Agents
    from forge_actors.runtime.ids import IdSource
    from forge_actors.runtime.registry import Registry
    from forge_actors.runtime.secrets import SecretFolder
    from forge_actors.runtime.settings import Settings

#: Jobs of a batch that are checked before others get their turn; a few milliseconds.
BUILT_AT_ONCE = 500
#: The origin of a job that is only looked at.
LATER = "schedule:later"


class Place(NamedTuple):
    """Where a request is in its batch, its repository and its checkout."""

    prefix: str
    repo: Repository
    checkout: str


class Admission:
    """Turns requests into jobs. One for each runtime."""

    def __init__(
        self,
        store: SqliteStore,
        registry: Registry,
        clock: Clock,
        ids: IdSource,
        settings: Callable[[], Settings],
        secrets: SecretFolder,
        submitted: Callable[[str, tuple[Job, ...]], None],
        agents: Agents | None = None,
        check_disk: Callable[[], None] = lambda: None,
        *,
        attended: bool = False,
    ) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._secrets = secrets
        self._agents = agents
        self._attended = attended  # there may be a person who allows effects
        #: Tells the supervisor of jobs that are saved.
        self._submitted = submitted
        #: Raises DiskLow where the disk has no room for another job.
        self._check_disk = check_disk
        self.again = Again(
            store,
            registry,
            clock,
            ids,
            agents,
            self._save,
            self._check_provider,
            self._authorities,
        )

    async def submit(
        self, requests: Sequence[JobRequest], key: str | None = None
    ) -> list[Accepted]:
        """See `Control.submit`."""
        if not requests:
            return []
        if len(requests) > MAX_BATCH:
            raise InvalidInput("jobs", f"has more than {MAX_BATCH} jobs")
        requests = with_dependencies(requests)
        single = len(requests) == 1
        found: dict[str, tuple[Repository, Checkout | None]] = {}
        places = []
        for index, request in enumerate(requests):
            prefix = "" if single else f"jobs[{index}]."
            if request.repo not in found:
                try:
                    found[request.repo] = await self._registry.find(request.repo)
                except InvalidInput as error:
                    raise InvalidInput(f"{prefix}repo", error.problem) from None
                except NotFound as error:
                    raise NotFound(f"{prefix}{error}") from None
            repo, checkout = found[request.repo]
            root = checkout.root if checkout else repo.path
            places.append(Place(prefix, repo, root))
        if key is not None:
            keyed(requests, key)
        accepted, move = await self._accept(requests, places, key)
        known = [entry.id for entry in accepted if entry.existing]
        if move is None and not all(self._store.read("job_state", i) for i in known):
            move = self._store.save([])  # another caller's, and not durable yet
        if move is not None:
            await move.wait()
        return accepted

    def check(
        self, request: JobRequest, repo: Repository, checkout: Checkout | None
    ) -> None:
        """Check a job that is submitted later, as far as that can be told now.

        Raises:
            InvalidInput, Refused: as `submit`.
        """
        root = checkout.root if checkout else repo.path
        place, now = Place("job.", repo, root), self._clock.now()
        if request.authorised:  # which only jobs are that no person asks for
            request = structs.replace(request, origin=LATER)
        self._build(request, place, {}, now, self._authorities())

    async def _accept(
        self, requests: Sequence[JobRequest], places: Sequence[Place], key: str | None
    ) -> tuple[list[Accepted], Move | None]:
        await self._store.quiet()
        # What is unique is looked up and saved without a pause in between.
        if key is not None:
            check_whole(requests, key, self._is_known)
        pauses = not any(r.request_id or r.unique for r in requests)
        forgettings = self._store.forgettings
        now = self._clock.now()
        order = batch_order(
            [(request.name, request.after) for request in requests],
            [place.prefix for place in places],
        )
        accepted: dict[int, Accepted] = {}
        names: dict[str, str] = {}
        seen: dict[str, tuple[str, str | None]] = {}
        uniques: dict[tuple[str, str], str] = {}
        changes: list[JobAdded] = []
        children: dict[Parent, list[str]] = {}
        authorities = self._authorities()
        for count, index in enumerate(order, start=1):
            if pauses and count % BUILT_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            request, place = requests[index], places[index]
            # Built first: a request is the same one if the job it makes is the same.
            change = self._build(request, place, names, now, authorities)
            digest = change.details.digest
            existing = self._existing(request, place, digest, seen, uniques)
            if existing is None:
                changes.append(change)
                accepted[index] = Accepted(change.job.id)
            else:
                accepted[index] = Accepted(existing, existing=True)
            job_id = accepted[index].id
            if request.parent is not None:
                children.setdefault(request.parent, []).append(job_id)
            if request.name is not None:
                names[request.name] = job_id
            if request.request_id is not None:
                seen[request.request_id] = (job_id, digest)
            if request.unique is not None:
                uniques[place.repo.id, request.unique] = job_id
        for place in places:
            if self._registry.get(place.repo.id) is None:
                raise NotFound(f"{place.prefix}repo: {place.repo.name!r} was removed")
        if self._store.forgettings != forgettings:
            check_dependencies(self._store, changes)
        handed_on = [self._delegated(*entry, now) for entry in children.items()]
        result = [accepted[index] for index in range(len(requests))]
        if not changes and not handed_on:
            return result, None
        return result, self._save(changes, handed_on, children)

    def _delegated(
        self, parent: Parent, children: list[str], now: float
    ) -> JobDelegated:
        rows = self._store.read_pending("job_attempt", parent.job)
        state, attempt, fence, repo = rows[0] if rows else (None, 0, 0, "")
        current = state in RESERVED and (
            (attempt, fence) == (parent.attempt, parent.fence)
        )
        if not current:
            raise FencingTokenStale(
                f"attempt {parent.attempt} of job {parent.job} (fence {parent.fence})"
                " is not its current one any more, so it can submit nothing;"
                " without FORGE_JOB_ID in the environment it is no part of a job"
            )
        data: dict[str, object] = {
            "attempt": parent.attempt,
            "fence": parent.fence,
            "child": children[0],
            "children": len(children),
        }
        event = Event("job_delegated", now, repo, parent.job, data)
        return JobDelegated(parent.job, attempt, fence, children[0], event)

    def _save(
        self,
        changes: Sequence[JobAdded],
        handed_on: Sequence[JobDelegated] = (),
        children: Mapping[Parent, list[str]] | None = None,
    ) -> Move:
        """Make them durable and tell of them, if they are let in and there is room.

        `children` are those of attempts that are looked up as current ones.
        """
        if self._store.policy is not None:
            check_let_in(self._store, self._store.policy, changes, children or {})
        self._check_room(len(changes))
        jobs: dict[str, list[Job]] = {}
        for change in changes:
            jobs.setdefault(change.job.repo, []).append(change.job)

        def submitted() -> None:
            for repo, added in jobs.items():
                self._submitted(repo, tuple(added))

        return self._store.save([*changes, *handed_on], then=submitted)

    def _check_room(self, count: int) -> None:
        if count:
            self._check_disk()
        limit = self._settings().limits.queued_jobs
        active = self._store.active
        if active + count > limit:
            raise Refused(
                f"{active} jobs wait or run and {count} more would pass the limit of"
                f" {limit} (setting limits.queued_jobs)"
            )

    def _is_known(self, request_id: str) -> bool:
        return bool(self._store.read_pending("by_request", request_id))

    def _existing(
        self,
        request: JobRequest,
        place: Place,
        digest: str | None,
        seen: dict[str, tuple[str, str | None]],
        uniques: dict[tuple[str, str], str],
    ) -> str | None:
        """The job that this request, or its unique key, made before."""
        if request.request_id is not None:
            rows = self._store.read_pending("by_request", request.request_id)
            known = rows[0] if rows else seen.get(request.request_id)
            if known is not None and known[1] != digest:
                raise RequestTaken(
                    f"{place.prefix}request_id: {request.request_id!r} belongs to job"
                    f" {known[0]}, which is not the same as this one"
                )
            if known is not None:
                return str(known[0])
            gone = self._store.read_pending("forgotten_request", request.request_id)
            if gone:
                raise RequestTaken(
                    f"{place.prefix}request_id: {request.request_id!r} belongs to job"
                    f" {gone[0][0]}, which has ended and was removed by retention"
                )
        if request.unique is not None:
            key = (place.repo.id, request.unique)
            rows = self._store.read_pending("by_unique", *key)
            return str(rows[0][0]) if rows else uniques.get(key)
        return None

    def _build(
        self,
        request: JobRequest,
        place: Place,
        names: dict[str, str],
        now: float,
        authorities: Authorities,
    ) -> JobAdded:
        prefix, repo, checkout = place
        agent = None
        if request.wants_agent:
            if self._agents is None:
                raise Refused("no agent can be run here")
            request, agent = self._agents.accept(request, prefix)
        owner = None
        if request.in_worktree is not None:
            owner = owner_of(self._store, request, repo, prefix)
            request = structs.replace(request, isolate=True)
        kind = kind_of(request, prefix)
        priority = priority_of(request.priority, prefix)
        self._check_provider(request.provider, prefix)
        after, met = dependencies_of(self._store, request, names, prefix)
        job_id = self._ids.make(now)
        claims = claims_of(request, kind, checkout, prefix, owner or job_id)
        replay = replay_of(request, kind, prefix)
        spec = spec_of(request, kind, checkout, self._secrets, prefix)
        if owner is not None:
            spec = structs.replace(spec, isolation=Isolation(of=owner))
        if agent is not None:
            spec = structs.replace(spec, agent=agent)
        if request.inputs:
            inputs = inputs_of(self._store, request, names, prefix)
            spec = structs.replace(spec, inputs=inputs)
        authority = authorities.of(request, prefix)
        asks = False
        if authority is not None:
            spec = structs.replace(spec, authority=authority)
            asks = authorities.waits(authority, job_id, prefix)
        work = authorities.work(request)
        if work is not None:
            spec = structs.replace(spec, work=work)
        if type(request) is not JobRequest:
            spec = as_candidate(spec, request)
        attempts = request.max_attempts
        job = Job(
            id=job_id,
            repo=repo.id,
            kind=kind,
            priority=priority,
            claims=claims,
            tokens=tokens_for(kind, request.provider),
            queued_at=now,
            state=first_state(asks=asks, met=met),
            after=after,
            replay=replay,
            max_attempts=attempts or 3,
            exit_attempts=spec.exit_attempts,
            admission_budget=spec.budgets.admission,
            queue_budget=spec.budgets.queue,
            work=work,
        )
        job.isolatable = may_be_isolated(job, spec)
        if agent is not None:
            job.agent, job.choices, job.verify = agent.name, agent.choices, spec.verify
        details = JobDetails(
            created_at=now,
            origin=request.origin,
            name=short(request.name, f"{prefix}name"),
            labels=labels_of(request.labels, prefix),
            provider=request.provider,
            unique=short(request.unique, f"{prefix}unique"),
            request_id=short(request.request_id, f"{prefix}request_id"),
        )
        if details.request_id is not None:
            digest = digest_of(job, spec, details, repo.path)
            details = structs.replace(details, digest=digest)
        return JobAdded(job, spec, details, accepted_event(job, details, authority))

    def _authorities(self) -> Authorities:
        return Authorities(self._store, attended=self._attended)

    def _check_provider(self, provider: str | None, prefix: str) -> None:
        if provider is not None and provider not in self._settings().providers:
            raise InvalidInput(
                f"{prefix}provider",
                f"{provider!r} is no known provider",
                allowed=tuple(sorted(self._settings().providers)),
            )
