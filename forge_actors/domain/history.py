"""History: what the events say, and nothing else, of every moment they tell of.

    history = History()
    for event in events:  # all of them, from the first on
        history.apply(event)

After each event it is what the store and the actors held at that moment. An event that
cannot follow what came before raises `BrokenHistory`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec import Struct, ValidationError, convert

from forge_actors.domain.capacity import ACTIVE_REPOSITORIES, CHECK_TOKENS, tokens_for
from forge_actors.domain.claims import Claim, conflict
from forge_actors.domain.errors import ForgeError
from forge_actors.domain.events import EventView
from forge_actors.domain.jobs import MOVES, RESERVED, JobError, Kind, State
from forge_actors.domain.relocation import Relocation
from forge_actors.domain.scopes import repository_scope
from forge_actors.domain.steering import ASKED
from forge_actors.domain.verifying import Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.events import Event

#: What is told by events whose kinds begin so, nobody holds.
_HOLD_NOTHING = (
    "worktree_",
    "lock_",
    "schedule_",
    "workflow_",
    "controller_",
    "epic_",
    "agent_session",
    "job_applied",
)


class BrokenHistory(ForgeError):
    """An event does not follow from those before it."""

    code = "HISTORY_BROKEN"


class PastJob(Struct, kw_only=True):
    """A job at one moment."""

    id: str
    repo: str
    state: State
    kind: Kind
    priority: str
    origin: str
    provider: str | None = None
    claims: tuple[Claim, ...] = ()
    after: tuple[str, ...] = ()
    name: str | None = None
    labels: tuple[str, ...] = ()
    retry_of: str | None = None
    work: str | None = None
    attempt: int = 0
    #: While it is dispatched or running; and it has no tokens yet.
    fence: int | None = None
    ahead: bool = False
    #: Why it waits or ended: what its last event says.
    reason: str | None = None
    #: The first job that it handed its work to.
    child: str | None = None
    #: Somebody asked to hold it: it waits, or if it runs it is suspended.
    held: bool = False
    #: Its processes stand still, for that or for a pause.
    suspended: bool = False
    #: The step that its attempts are of, if its work is checked.
    step: Step | None = None

    @property
    def tokens(self) -> tuple[str, ...]:
        """What it takes when it runs."""
        if self.step == "check":
            return CHECK_TOKENS
        return tokens_for(self.kind, self.provider)


class PastRepository(Struct):
    """A repository at one moment."""

    id: str
    name: str
    path: str
    enabled: bool = True
    removed: bool = False
    #: The last one it gave.
    fence: int = 0


class History:
    """A fold over events. Use one that was given every event from the first on."""

    def __init__(self) -> None:
        #: The number of the last event.
        self.seq = 0
        self.jobs: dict[str, PastJob] = {}
        self.repositories: dict[str, PastRepository] = {}
        #: Who holds what: job to claims, for each repository.
        self.leases: dict[str, dict[str, tuple[Claim, ...]]] = {}
        #: The claims that ended jobs left held, by repository and job.
        self.kept: dict[str, dict[str, tuple[Claim, ...]]] = {}
        #: Who holds each kind of token.
        self.tokens: dict[str, dict[str, None]] = {}
        #: How many of each there may be; empty until a runtime has said so.
        self.limits: dict[str, int] = {}
        self.active_repositories: int | None = None
        self.repository_workers: int | None = None
        #: Of each pause in force: whether it suspends what runs in its scope.
        self.pauses: dict[str, bool] = {}
        #: Why the account of each of these providers is closed.
        self.closed_providers: dict[str, str] = {}
        #: The mode of the policy.
        self.policy = "normal"
        self.pressure: str | None = None
        self.draining = False
        #: The process id of the runtime that runs, and whether it takes requests.
        self.runtime: int | None = None
        self.ready = False

    def apply(self, event: Event | EventView) -> None:
        """Take the next event.

        Raises:
            BrokenHistory: it cannot be the next one.
        """
        if event.seq <= self.seq:
            raise BrokenHistory(f"event {event.seq} comes after event {self.seq}")
        repo = event.repo_id if isinstance(event, EventView) else event.repo
        try:
            if event.kind.startswith(_HOLD_NOTHING):
                pass
            elif event.kind.startswith("job_"):
                self._job(event.kind, repo, event.job, event.data)
            elif event.kind.startswith("repository_"):
                self._repository(event.kind, repo, event.data)
            else:
                self._whole(event.kind, event.data)
        except BrokenHistory as error:
            raise BrokenHistory(f"event {event.seq}, {event.kind}: {error}") from None
        except (KeyError, TypeError, ValidationError) as error:
            raise BrokenHistory(
                f"event {event.seq}, {event.kind}, lacks something: {error!r}"
            ) from error
        self.seq = event.seq

    def holders(self, token: str) -> tuple[str, ...]:
        """The jobs that hold a token of this kind."""
        return tuple(self.tokens.get(token, ()))

    def faults(self, job_id: str) -> list[str]:
        """What is wrong with what a job was just given; empty if nothing is.

        A limit that was made smaller than what is in use takes nothing back, so this is
        to be asked of a job when it is dispatched.
        """
        job = self.jobs[job_id]
        leases = self.leases.get(job.repo, {})
        found = [
            f"{mine} of {job_id} conflicts with {theirs} of {other}"
            for other, held in (*leases.items(), *self.kept.get(job.repo, {}).items())
            if other != job_id
            for mine in job.claims
            for theirs in held
            if conflict(mine, theirs)
        ]
        uses = [
            *((t, len(self.tokens[t]), self.limits.get(t, 0)) for t in job.tokens),
            (ACTIVE_REPOSITORIES, len(self.leases), self.active_repositories),
            ("repository_workers", len(leases), self.repository_workers),
        ]
        found += [
            f"{job_id} makes {used} of {limit} {name}"
            for name, used, limit in uses
            if limit is not None and used > limit
        ]
        repository = self.repositories[job.repo]
        if repository.removed:
            found.append(f"the repository of {job_id} is removed")
        return found

    # -- jobs ------------------------------------------------------------------------

    def _job(
        self,
        kind: str,
        repo: str | None,
        job_id: str | None,
        data: Mapping[str, object],
    ) -> None:
        if job_id is None or repo not in self.repositories:
            raise BrokenHistory("it names no job, or no repository that is known")
        word = kind.removeprefix("job_")
        job = self.jobs.get(job_id)
        if job is None:
            facts = {**data, "id": job_id, "repo": repo, "state": word}
            self.jobs[job_id] = convert(facts, PastJob)
        elif word == "readied":
            self._move(job, "dispatched", data, True)
        elif word == "dispatched" and job.ahead:
            self._take_tokens(job)
        elif word in MOVES:
            self._move(job, word, data, False)
        elif word in ("held", "unheld"):
            job.held = word == "held"
        elif word in ("paused", "resumed"):
            # With `also` a pause suspends it too.
            job.suspended = word == "paused" or "also" in data
            if data["reason"] == ASKED:
                job.held = word == "paused"
        elif word == "delegated":
            job.child = job.child or str(data["child"])
        elif word == "set_aside":
            job.reason = str(data["reason"])
        elif word == "quarantined":
            kept = self.kept.setdefault(job.repo, {})
            kept[job_id] = convert(data["claims"], tuple[Claim, ...])
        elif word == "quarantine_ended":
            self.kept[job.repo].pop(job_id, None)
        elif word in ("auto_isolated", "unisolated"):
            job.claims = convert(data["claims"], tuple[Claim, ...])
        elif word == "redirected":
            job.provider = str(data["provider"])
        elif word == "edited":
            self._edit(job, cast("Mapping[str, object]", data["changed"]))
        else:
            raise BrokenHistory("it is of no known kind")

    def _move(
        self, job: PastJob, state: State, data: Mapping[str, object], ahead: bool
    ) -> None:
        if state not in MOVES[job.state]:
            raise BrokenHistory(f"{job.id} is {job.state}")
        job.reason = _reason(data)
        if state == "dispatched":
            self._dispatch(job, data)
            job.ahead = ahead
        if state in RESERVED and not ahead:
            self._take_tokens(job)
        elif job.state in RESERVED and state not in RESERVED:
            self._free(job)
        if "step" in data:
            job.step = convert(data["step"], Step)
        job.state = state

    def _dispatch(self, job: PastJob, data: Mapping[str, object]) -> None:
        attempt, fence = cast("int", data["attempt"]), cast("int", data["fence"])
        repository = self.repositories[job.repo]
        if attempt != job.attempt + 1 or fence <= repository.fence:
            raise BrokenHistory(f"attempt {attempt} or fence {fence} was there before")
        if convert(data["tokens"], tuple[str, ...]) != job.tokens:
            raise BrokenHistory(f"{job.id} takes {', '.join(job.tokens)}")
        job.claims = convert(data["claims"], tuple[Claim, ...])
        job.attempt, job.fence, repository.fence = attempt, fence, fence
        self.leases.setdefault(job.repo, {})[job.id] = job.claims

    def _take_tokens(self, job: PastJob) -> None:
        job.ahead = False
        for token in job.tokens:
            self.tokens.setdefault(token, {})[job.id] = None

    def _free(self, job: PastJob) -> None:
        job.fence, job.suspended, job.ahead = None, False, False
        held = self.leases[job.repo]
        del held[job.id]
        if not held:
            del self.leases[job.repo]
        for jobs in self.tokens.values():
            jobs.pop(job.id, None)

    def _edit(self, job: PastJob, changed: Mapping[str, object]) -> None:
        """Take over what of the job is kept here; budgets, for one, are not."""
        fields = {name: getattr(job, name) for name in PastJob.__struct_fields__}
        edited = convert(
            {**fields, **{name: changed[name] for name in changed if name in fields}},
            PastJob,
        )
        self.jobs[job.id] = edited

    # -- repositories and the runtime ------------------------------------------------

    def _repository(
        self, kind: str, repo: str | None, data: Mapping[str, object]
    ) -> None:
        if repo is None:
            raise BrokenHistory("it names no repository")
        if kind == "repository_added":
            name = str(data["name"])
            self.repositories[repo] = PastRepository(repo, name, str(data["path"]))
            return
        known = self.repositories.get(repo)
        if known is None or known.removed:
            raise BrokenHistory(f"{repo} is not known")
        known.name = str(data.get("name", known.name))
        match kind:
            case "repository_moved":
                known.path = str(data["to"])
                if "moved" in data:
                    old, new = convert(data["moved"], tuple[str, str])
                    self._move_claims(repo, Relocation(old, new))
            case "repository_enabled" | "repository_disabled":
                known.enabled = kind == "repository_enabled"
            case "repository_removed":
                known.removed, known.enabled = True, False
                self.pauses.pop(repository_scope(repo), None)
            case "repository_set_aside" | "repository_taken_back":
                pass  # its jobs stay what they are
            case (
                "repository_trusted"
                | "repository_untrusted"
                | "repository_trust_differs"
            ):
                pass  # nobody holds anything by it
            case "repository_status_changed":
                pass  # it is of its checkout
            case "repository_lost":
                pass  # its folder is another's now; its id may find it again
            case _:
                raise BrokenHistory("it is of no known kind")

    def _move_claims(self, repo: str, moved: Relocation) -> None:
        """What its jobs hold or wait for, and what is kept, is where it is now."""
        for job in self.jobs.values():
            if job.repo == repo and MOVES[job.state]:
                job.claims = moved.claims(job.claims)
        for held in (self.leases.get(repo, {}), self.kept.get(repo, {})):
            for name, claims in held.items():
                held[name] = moved.claims(claims)

    def _whole(self, kind: str, data: Mapping[str, object]) -> None:
        match kind:
            case "runtime_started":
                self.runtime, self.ready = cast("int", data["pid"]), False
                self.pressure, self.draining = None, False
            case "runtime_ready":
                self.ready = True
            case "store_restored":
                self.__init__()  # type: ignore[misc]
            case "settings_changed":
                pass  # what it means for the limits is told by an event of theirs
            case (
                "write_refused"
                | "receipt_refused"
                | "effect_refused"
                | "webhook_closed"
                | "webhook_opened"
                | "release_activated"
                | "release_superseded"
                | "runtime_failed"
                | "actor_stalled"
                | "actor_resumed"
                | "loop_blocked"
                | "disk_room"
                | "clean_ended"
                | "clean_failed"
                | "inbox_dismissed"
            ):
                pass  # who holds what is not changed by it
            case "runtime_stopped":
                self.runtime, self.ready = None, False
            case "limits":
                self.limits = convert(data["tokens"], dict[str, int])
                self.active_repositories = cast("int", data["active_repositories"])
                self.repository_workers = cast("int", data["repository_workers"])
            case "pressure_began" | "pressure_ended":
                began = kind == "pressure_began"
                self.pressure = str(data["reason"]) if began else None
            case "drain_began" | "drain_ended":
                self.draining = kind == "drain_began"
            case "paused":
                self.pauses[str(data["scope"])] = bool(data["jobs"])
            case "resumed":
                self.pauses.pop(str(data["scope"]), None)
            case "provider_closed":
                self.closed_providers[str(data["provider"])] = str(data["reason"])
            case "policy_changed":
                self.policy = str(data["mode"])
            case "provider_opened":
                self.closed_providers.pop(str(data["provider"]), None)
            case _:
                raise BrokenHistory("it is of no known kind")


def _reason(data: Mapping[str, object]) -> str | None:
    """The code of an error, or the words; None if the move speaks for itself."""
    error = data.get("error")
    if error is not None:
        return convert(error, JobError).code
    return None if "reason" not in data else str(data["reason"])
