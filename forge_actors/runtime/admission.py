"""Admission: from what a caller sent to jobs that are accepted, all of them or none.

The checks and the save happen in one go, without a pause in between, so that two
callers cannot both see the same request id, unique key or free place as unused.
"""

from __future__ import annotations

import hashlib
import os
import signal
from typing import TYPE_CHECKING, NamedTuple, get_args

import msgspec
from msgspec import structs

from forge_actors.domain.capacity import tokens_for
from forge_actors.domain.changes import JobAdded, JobDetails
from forge_actors.domain.claims import Claim, parse_claim, strongest
from forge_actors.domain.deadlines import (
    default_execution,
    parse_budget,
    parse_duration,
)
from forge_actors.domain.errors import ForgeError, InvalidInput, NotFound, Refused
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import (
    KINDS,
    READ_ONLY_KINDS,
    REPLAYS,
    TERMINAL,
    Budgets,
    Job,
    JobSpec,
    Kind,
    Replay,
)
from forge_actors.domain.order import batch_order
from forge_actors.domain.priority import PRIORITIES
from forge_actors.domain.requests import (
    MAX_BATCH,
    MAX_LABELS,
    MAX_NAME_LENGTH,
    Accepted,
    JobRequest,
    decode_argv,
    encode_argv,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.domain.ports import Clock
    from forge_actors.domain.repositories import Checkout, Repository
    from forge_actors.edges.sqlite.store import Move, SqliteStore
    from forge_actors.runtime.ids import IdSource
    from forge_actors.runtime.registry import Registry
    from forge_actors.runtime.settings import Settings

MAX_GRACE = 3600.0
MAX_ATTEMPTS = 100
DEFAULT_GRACE = 10.0

_canonical = msgspec.json.Encoder(order="deterministic")


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
        settings: Settings,
        submitted: Callable[[str, tuple[Job, ...]], None],
    ) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        self._ids = ids
        self._settings = settings
        #: Tells the supervisor of jobs that are saved.
        self._submitted = submitted

    async def submit(self, requests: Sequence[JobRequest]) -> list[Accepted]:
        """See `Control.submit`."""
        if not requests:
            return []
        if len(requests) > MAX_BATCH:
            raise InvalidInput("jobs", f"has more than {MAX_BATCH} jobs")
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
                    raise _placed(error, prefix) from None
            repo, checkout = found[request.repo]
            root = checkout.root if checkout else repo.path
            places.append(Place(prefix, repo, root))
        accepted, move = self._accept(requests, places)
        if move is not None:
            await move.wait()
        return accepted

    def _accept(
        self, requests: Sequence[JobRequest], places: Sequence[Place]
    ) -> tuple[list[Accepted], Move | None]:
        now = self._clock.now()
        order = batch_order(
            [(request.name, request.after) for request in requests],
            [place.prefix for place in places],
        )
        accepted: dict[int, Accepted] = {}
        names: dict[str, str] = {}
        seen: dict[str, tuple[str, str]] = {}
        uniques: dict[tuple[str, str], str] = {}
        changes: list[JobAdded] = []
        for index in order:
            request, place = requests[index], places[index]
            digest = _digest(request)
            existing = self._existing(request, place, digest, seen, uniques)
            if existing is None:
                change = self._build(request, place, digest, names, now)
                changes.append(change)
                accepted[index] = Accepted(change.job.id)
            else:
                accepted[index] = Accepted(existing, existing=True)
            job_id = accepted[index].id
            if request.name is not None:
                names[request.name] = job_id
            if request.request_id is not None:
                seen[request.request_id] = (job_id, digest)
            if request.unique is not None:
                uniques[place.repo.id, request.unique] = job_id
        result = [accepted[index] for index in range(len(requests))]
        if not changes:
            return result, None
        self._check_room(len(changes))
        jobs: dict[str, list[Job]] = {}
        for change in changes:
            jobs.setdefault(change.job.repo, []).append(change.job)

        def submitted() -> None:
            for repo, added in jobs.items():
                self._submitted(repo, tuple(added))

        return result, self._store.save(changes, then=submitted)

    def _check_room(self, count: int) -> None:
        limit = self._settings.limits.queued_jobs
        [(active,)] = self._store.read_pending("active_total")
        if active + count > limit:
            raise Refused(
                f"{active} jobs wait or run and {count} more would pass the limit of"
                f" {limit} (setting limits.queued_jobs)"
            )

    def _existing(
        self,
        request: JobRequest,
        place: Place,
        digest: str,
        seen: dict[str, tuple[str, str]],
        uniques: dict[tuple[str, str], str],
    ) -> str | None:
        """The job that this request, or its unique key, made before."""
        if request.request_id is not None:
            rows = self._store.read_pending("by_request", request.request_id)
            known = rows[0] if rows else seen.get(request.request_id)
            if known is not None and known[1] != digest:
                raise Refused(
                    f"{place.prefix}request_id: {request.request_id!r} belongs to job"
                    f" {known[0]}, which is not the same as this one"
                )
            if known is not None:
                return str(known[0])
        if request.unique is not None:
            key = (place.repo.id, request.unique)
            rows = self._store.read_pending("by_unique", *key)
            return str(rows[0][0]) if rows else uniques.get(key)
        return None

    def _build(
        self,
        request: JobRequest,
        place: Place,
        digest: str,
        names: dict[str, str],
        now: float,
    ) -> JobAdded:
        prefix, repo, checkout = place
        kind = _one_of(request.kind, KINDS, f"{prefix}kind")
        if request.priority not in PRIORITIES:
            raise InvalidInput(
                f"{prefix}priority",
                f"{request.priority!r} is no priority",
                allowed=PRIORITIES,
            )
        self._check_provider(request.provider, prefix)
        after, met = self._dependencies(request, names, prefix)
        claims = _claims(request, kind, checkout, prefix)
        replay = _replay(request, kind, prefix)
        spec = _spec(request, kind, checkout, prefix)
        attempts = request.max_attempts
        job = Job(
            id=self._ids.make(now),
            repo=repo.id,
            kind=kind,
            priority=PRIORITIES.index(request.priority),
            claims=claims,
            tokens=tokens_for(kind, request.provider),
            queued_at=now,
            state="queued" if met else "waiting_for_dependency",
            after=after,
            replay=replay,
            max_attempts=attempts or 3,
            exit_attempts=spec.exit_attempts,
            admission_budget=spec.budgets.admission,
            queue_budget=spec.budgets.queue,
        )
        details = JobDetails(
            created_at=now,
            origin=request.origin,
            name=_short(request.name, f"{prefix}name"),
            labels=_labels(request.labels, prefix),
            provider=request.provider,
            unique=_short(request.unique, f"{prefix}unique"),
            request_id=_short(request.request_id, f"{prefix}request_id"),
            digest=digest,
        )
        event = Event(f"job_{job.state}", now, repo.id, job.id)
        return JobAdded(job, spec, details, event)

    def _check_provider(self, provider: str | None, prefix: str) -> None:
        if provider is not None and provider not in self._settings.providers:
            raise InvalidInput(
                f"{prefix}provider",
                f"{provider!r} is no known provider",
                allowed=tuple(sorted(self._settings.providers)),
            )

    def _dependencies(
        self, request: JobRequest, names: dict[str, str], prefix: str
    ) -> tuple[tuple[str, ...], bool]:
        """The ids a job runs after, and whether all of them have succeeded."""
        ids: dict[str, None] = {}
        for selector in request.after:
            try:
                job_id = names.get(selector) or self._store.match(selector)
            except ForgeError as error:
                raise InvalidInput(f"{prefix}after", str(error)) from None
            ids[job_id] = None
        states = [self._store.read_pending("job_state", job_id) for job_id in ids]
        # A job of the same batch has no row yet, and has certainly not ended.
        met = all(rows and rows[0][0] in TERMINAL for rows in states)
        return tuple(ids), met


def _placed(error: NotFound, prefix: str) -> NotFound:
    return NotFound(f"{prefix}{error}")


def _digest(request: JobRequest) -> str:
    content = structs.replace(request, request_id=None)
    return hashlib.sha256(_canonical.encode(content)).hexdigest()


def _one_of(value: str, known: tuple[Kind, ...], field: str) -> Kind:
    for word in known:
        if word == value:
            return word
    raise InvalidInput(field, f"{value!r} is no kind of job", allowed=known)


def _claims(
    request: JobRequest, kind: Kind, checkout: str, prefix: str
) -> tuple[Claim, ...]:
    if request.claims:
        field = f"{prefix}claims"
        return strongest(
            _resolved(parse_claim(text, checkout=checkout, field=field))
            for text in request.claims
        )
    if request.read_only:
        return ()
    if kind in READ_ONLY_KINDS:
        return (Claim("read", "workspace", "", checkout),)
    return (Claim("write", "repo-content", "*"),)


def _resolved(claim: Claim) -> Claim:
    """A path claim with the links on its way resolved, so two spellings are one."""
    if claim.family != "path" or not claim.rest or claim.rest.startswith(("/", "~")):
        return claim
    real = os.path.realpath(os.path.join(claim.checkout, claim.rest))
    rest = os.path.relpath(real, os.path.realpath(claim.checkout))
    return structs.replace(claim, rest=rest)


def _replay(request: JobRequest, kind: Kind, prefix: str) -> Replay:
    if request.replay is None:
        return "safe" if request.read_only or kind in READ_ONLY_KINDS else "never"
    for word in REPLAYS:
        if word == request.replay:
            return word
    raise InvalidInput(
        f"{prefix}replay", f"{request.replay!r} is no policy", allowed=get_args(Replay)
    )


def _spec(request: JobRequest, kind: Kind, checkout: str, prefix: str) -> JobSpec:
    attempts = request.max_attempts
    if attempts is not None and not 1 <= attempts <= MAX_ATTEMPTS:
        raise InvalidInput(f"{prefix}max_attempts", f"is outside 1 to {MAX_ATTEMPTS}")
    argv = decode_argv(request.argv, field=f"{prefix}argv")
    return JobSpec(
        argv=tuple(encode_argv(argv)),
        cwd=_folder(request.cwd, checkout, f"{prefix}cwd"),
        env=_env(request.env, f"{prefix}env"),
        stdin=_file(request.stdin, f"{prefix}stdin"),
        budgets=Budgets(
            admission=_budget(request.admission_timeout, f"{prefix}admission_timeout"),
            queue=_budget(request.queue_timeout, f"{prefix}queue_timeout"),
            execution=_budget(request.timeout, f"{prefix}timeout")
            or default_execution(kind),
            idle=_budget(request.idle_timeout, f"{prefix}idle_timeout"),
        ),
        stop_signal=_signal(request.stop_signal, f"{prefix}stop_signal"),
        grace=_grace(request.grace, f"{prefix}grace"),
        keep_leftovers=request.keep_leftovers,
        exit_attempts=attempts or 1,
    )


def _budget(value: str | float | None, field: str) -> float | None:
    return None if value is None else parse_budget(value, field=field)


def _grace(value: str | float | None, field: str) -> float:
    seconds = DEFAULT_GRACE if value is None else parse_duration(value, field=field)
    if seconds > MAX_GRACE:
        raise InvalidInput(field, f"{value!r} is longer than {MAX_GRACE:.0f} s")
    return seconds


def _signal(name: str, field: str) -> str:
    full = name.upper() if name.upper().startswith("SIG") else f"SIG{name.upper()}"
    if full not in signal.Signals.__members__:
        raise InvalidInput(field, f"{name!r} is no signal; write for example SIGINT")
    return full


def _folder(cwd: str | None, checkout: str, field: str) -> str:
    path = os.path.join(checkout, cwd) if cwd else checkout
    if cwd and not os.path.isdir(path):
        raise InvalidInput(field, f"{cwd!r} is no folder")
    return path


def _file(stdin: str | None, field: str) -> str | None:
    if stdin is not None and not (os.path.isabs(stdin) and os.path.isfile(stdin)):
        raise InvalidInput(field, f"{stdin!r} is no file with an absolute path")
    return stdin


def _env(env: dict[str, str], field: str) -> dict[str, str]:
    for name, value in env.items():
        if not name or "=" in name or "\0" in name + value:
            raise InvalidInput(field, f"{name!r} cannot name a variable")
        if name.startswith("FORGE_"):
            raise InvalidInput(field, f"{name!r} is set by the service itself")
    return env


def _labels(labels: list[str], prefix: str) -> tuple[str, ...]:
    if len(labels) > MAX_LABELS:
        raise InvalidInput(f"{prefix}labels", f"are more than {MAX_LABELS}")
    for label in labels:
        _short(label, f"{prefix}labels")
    return tuple(dict.fromkeys(labels))


def _short(text: str | None, field: str) -> str | None:
    if text is not None and not 0 < len(text) <= MAX_NAME_LENGTH:
        raise InvalidInput(field, f"has 1 to {MAX_NAME_LENGTH} characters")
    return text
