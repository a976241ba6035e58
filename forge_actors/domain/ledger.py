"""The ledger: one repository's queue and leases. Each move returns (changes, verdict).

Jobs that wait for others are kept here; those that are ready are in its lanes.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING

from forge_actors.domain.capacity import Offer
from forge_actors.domain.changes import (
    JobDispatched,
    JobEnded,
    JobRan,
    JobRequeued,
    JobWaits,
)
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import JobError, check_move
from forge_actors.domain.lanes import Lanes, find_blocker, rank_of
from forge_actors.domain.recovery import decide
from forge_actors.domain.waiting import Waiting, describe_gone, state_for_family

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.domain.capacity import RepositoryLimits
    from forge_actors.domain.changes import Change
    from forge_actors.domain.claims import Claim
    from forge_actors.domain.jobs import Job, State
    from forge_actors.domain.lanes import Tokens
    from forge_actors.domain.launch import ProcessIdentity, Receipt
    from forge_actors.domain.recovery import Outcome, StopReason
    from forge_actors.domain.waiting import WaitingKind

#: Jobs looked at, and waiting states saved, at one pass; the rest is told when
#: somebody asks.
LOOKED_AT_ONCE = 1000
ANNOUNCED_AT_ONCE = 100


class Ledger:
    """The queue and the leases of one repository. Only its actor's task holds one.

    Invariants: a job is in `jobs` until it has ended; `leases.keys()` are exactly the
    jobs that are dispatched or running; no two leases conflict.
    """

    def __init__(
        self,
        repo: str,
        *,
        fence: int = 0,
        enabled: bool = True,
        workers: int = 4,
        overtake_after: float = 1800.0,
        known: frozenset[str] | None = None,
    ) -> None:
        self.repo = repo
        self.fence = fence
        self.enabled = enabled
        self.workers = workers
        self.jobs: dict[str, Job] = {}
        self.leases: dict[str, tuple[Claim, ...]] = {}
        self._unmet: dict[str, set[str]] = {}
        self._dependents: dict[str, list[str]] = {}
        self._lanes = Lanes(overtake_after, known)
        self._deadlines: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}

    # -- what it holds ---------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """It owns no queued job, no lease and no running worker."""
        return not self.jobs

    def unmet(self, job: str) -> frozenset[str]:
        """The jobs that must succeed before this one may start."""
        return frozenset(self._unmet.get(job, ()))

    def next_deadline(self) -> float | None:
        """When the next queue budget runs out, in wall-clock seconds."""
        while self._deadlines:
            due, job = self._deadlines[0]
            # A job that was queued again has a new budget, and left its old one here.
            if job in self._lanes.ready and self._due[job] == due:
                break
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    # -- moves -----------------------------------------------------------------------

    def add(self, job: Job, unmet: Iterable[str], now: float) -> list[Change]:
        """Take in a job that was accepted, or one that was saved as waiting."""
        assert job.id not in self.jobs, "a job is added once"
        self.jobs[job.id] = job
        unseen = job.attempt == 0
        if (
            unseen
            and job.admission_budget
            and now > job.queued_at + job.admission_budget
        ):
            return self._end(
                job,
                "timed_out",
                JobError("ADMISSION_TIMEOUT", "nothing looked at it in time"),
                now,
            )
        waits_for = set(unmet)
        if waits_for:
            self._unmet[job.id] = waits_for
            for dependency in waits_for:
                self._dependents.setdefault(dependency, []).append(job.id)
            return []
        self._enter(job, now)
        return []

    def adopt(self, job: Job) -> None:
        """Take in a job that was saved as dispatched or running."""
        self.jobs[job.id] = job
        self.leases[job.id] = job.claims

    def set_limits(self, limits: RepositoryLimits) -> None:
        """Go by other limits from now on; what runs is left alone."""
        self.workers = limits.workers
        self._lanes.set_limits(limits.overtake_after, limits.known)

    def dependency_ended(
        self, dependency: str, state: State, now: float
    ) -> list[Change]:
        """A job that others wait for has ended: they may start, or can never."""
        changes: list[Change] = []
        for waiter in self._dependents.pop(dependency, ()):
            unmet = self._unmet.get(waiter)
            job = self.jobs.get(waiter)
            if unmet is None or job is None:
                continue
            if state != "succeeded":
                error = JobError(
                    "DEPENDENCY_BLOCKED",
                    f"it runs after {dependency}, which is {state}",
                )
                changes += self._end(job, "human_attention_required", error, now)
                continue
            unmet.discard(dependency)
            if not unmet:
                del self._unmet[waiter]
                changes += self._wait_in(job, "queued", now, reason="dependencies met")
                self._enter(job, now)
        return changes

    def expire(self, now: float) -> list[Change]:
        """End the jobs whose queue budget has run out."""
        changes: list[Change] = []
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            job = self.jobs[heappop(self._deadlines)[1]]
            error = JobError("QUEUE_TIMEOUT", "it could not start in time")
            changes += self._end(job, "timed_out", error, now)
        return changes

    def dispatch(self, tokens: Tokens, now: float) -> tuple[list[Change], Job | None]:
        """Give the best job that needs these tokens its leases and its fence."""
        if not self._may_start():
            return [], None
        job = self._lanes.best(tokens, self.leases, now)
        if job is None:
            return [], None
        self._lanes.leave(job)
        check_move(job.state, "dispatched")
        self.fence += 1
        job.state, job.fence, job.attempt = "dispatched", self.fence, job.attempt + 1
        self.leases[job.id] = job.claims
        self._lanes.release(job.id)
        data: dict[str, object] = {
            "attempt": job.attempt,
            "fence": self.fence,
            "tokens": tokens,
            "claims": [str(claim) for claim in job.claims],
        }
        event = Event("job_dispatched", now, self.repo, job.id, data)
        change = JobDispatched(job.id, self.repo, job.attempt, self.fence, now, event)
        return [change], job

    def started(
        self, job_id: str, attempt: int, identity: ProcessIdentity, now: float
    ) -> list[Change]:
        """The process of an attempt runs. Old news of an older attempt is no move."""
        job = self._current(job_id, attempt)
        if job is None or job.state != "dispatched":
            return []
        check_move(job.state, "running")
        job.state, job.started_at = "running", now
        event = Event("job_running", now, self.repo, job.id, {"pid": identity.pid})
        return [JobRan(job.id, identity, now, event)]

    def finish(
        self,
        job_id: str,
        attempt: int,
        receipt: Receipt | None,
        stopped: StopReason | None,
        now: float,
    ) -> tuple[list[Change], Outcome | None]:
        """The tree of an attempt is gone. None if it is not the current attempt."""
        job = self._current(job_id, attempt)
        if job is None or job_id not in self.leases:
            return [], None
        outcome = decide(job, receipt, stopped)
        if not outcome.again:
            return self._end(job, outcome.state, outcome.error, now, receipt), outcome
        self._free(job_id)
        check_move(job.state, outcome.state)
        job.state, job.fence, job.queued_at = outcome.state, None, now
        job.started_at = None
        data: dict[str, object] = {"attempt": attempt}
        if outcome.error:
            data["error"] = outcome.error
        event = Event("job_queued", now, self.repo, job_id, data)
        self._enter(job, now)
        return [JobRequeued(job_id, job.state, outcome.error, now, event)], outcome

    def cancel(self, job_id: str, now: float) -> tuple[list[Change], bool]:
        """End a waiting job; True if it runs instead and its worker must be stopped."""
        if job_id in self.leases:
            return [], True
        job = self.jobs[job_id]
        error = JobError("CANCELLED", "it was cancelled before it began")
        return self._end(job, "cancelled", error, now), False

    def fail_waiting(self, code: str, message: str, now: float) -> list[Change]:
        """End every waiting job as failed: its folder is gone."""
        waiting = [job for job in self.jobs.values() if job.id not in self.leases]
        error = JobError(code, message)
        return [c for job in waiting for c in self._end(job, "failed", error, now)]

    def announce(self, now: float) -> list[Change]:
        """Look again at all of it, and save what the first waiting jobs wait for."""
        self._lanes.reconsider()
        changes: list[Change] = []
        for job_id in islice(self._lanes.ready, LOOKED_AT_ONCE):
            if len(changes) >= ANNOUNCED_AT_ONCE:
                break
            job = self.jobs[job_id]
            waiting = self.waiting(job_id, now)
            changes += self._wait_in(
                job, self.state_of(job_id, waiting), now, reason=waiting.detail
            )
        return changes

    # -- questions -------------------------------------------------------------------

    def offers(self, now: float) -> tuple[Offer, ...]:
        """The best job that could start, for each set of tokens that jobs need."""
        if not self._may_start():
            return ()
        lanes = self._lanes
        bests = (lanes.best(tokens, self.leases, now) for tokens in lanes.tokens())
        return tuple(
            Offer(self.repo, job.id, job.tokens, job.priority, job.queued_at)
            for job in bests
            if job is not None
        )

    def state_of(self, job_id: str, waiting: Waiting | None) -> State:
        """The state to show: what a waiting job waits for now, not when last saved."""
        job = self.jobs[job_id]
        if waiting is None:
            return job.state
        if job_id in self._unmet:
            return "waiting_for_dependency"
        blocked = waiting.kind in ("claim", "reservation") and waiting.resource
        if not blocked:
            return "queued"
        claim = next(c for c in job.claims if str(c) == waiting.resource)
        return state_for_family(claim.family)

    def waiting(self, job_id: str, now: float) -> Waiting:
        """What keeps a waiting job from being offered; kind `token` if nothing does."""
        job = self.jobs[job_id]
        gone = self._lanes.unknown(job.tokens)
        if gone is not None:
            return Waiting("policy", job.queued_at, describe_gone(gone), resource=gone)
        unmet = self._unmet.get(job_id)
        if unmet:
            names = tuple(sorted(unmet))
            detail = f"it runs after {', '.join(names)}"
            return Waiting("dependency", job.queued_at, detail, holders=names)
        if not self.enabled:
            return Waiting("disabled", job.queued_at, "its repository is disabled")
        since = max(job.queued_at, self._lanes.ready[job_id][1].since)
        reservations = self._lanes.reservations(now)
        blocker = find_blocker(job, self.leases, reservations, now)
        if blocker is not None:
            holder, claim, reserved = blocker
            kind: WaitingKind = "reservation" if reserved else "claim"
            detail = (
                f"{claim} is reserved for {holder}, which waited too long"
                if reserved
                else f"{claim} conflicts with what {holder} holds"
            )
            if any(first is job for first in reservations):
                detail += "; it waited so long that its claims are reserved for it"
            return Waiting(kind, since, detail, holders=(holder,), resource=str(claim))
        if len(self.leases) >= self.workers:
            return Waiting(
                "token",
                since,
                f"{len(self.leases)} of {self.workers} workers of its repository run",
                holders=tuple(self.leases),
                resource="repository_workers",
                used=len(self.leases),
                limit=self.workers,
            )
        return Waiting("token", since, "it is next when a worker is free")

    def ahead_of(self, job_id: str, now: float) -> int:
        """How many ready jobs of this repository with the same tokens come first."""
        mine = self.jobs[job_id]
        place = rank_of(mine, now)
        return sum(
            1
            for other, _ in self._lanes.ready.values()
            if other.tokens == mine.tokens and rank_of(other, now) < place
        )

    # -- inside ----------------------------------------------------------------------

    def _may_start(self) -> bool:
        return self.enabled and len(self.leases) < self.workers

    def _current(self, job_id: str, attempt: int) -> Job | None:
        job = self.jobs.get(job_id)
        return job if job is not None and job.attempt == attempt else None

    def _enter(self, job: Job, now: float) -> None:
        self._lanes.enter(job)
        if job.queue_budget is not None:
            self._due[job.id] = now + job.queue_budget
            heappush(self._deadlines, (self._due[job.id], job.id))

    def _free(self, job_id: str) -> None:
        del self.leases[job_id]
        self._lanes.release(job_id)

    def _wait_in(
        self, job: Job, state: State, now: float, *, reason: str
    ) -> list[Change]:
        if job.state == state:
            return []
        check_move(job.state, state)
        job.state = state
        event = Event(f"job_{state}", now, self.repo, job.id, {"reason": reason})
        return [JobWaits(job.id, state, event)]

    def _end(
        self,
        job: Job,
        state: State,
        error: JobError | None,
        now: float,
        receipt: Receipt | None = None,
    ) -> list[Change]:
        check_move(job.state, state)
        if job.id in self.leases:
            self._free(job.id)
        elif job.id in self._lanes.ready:
            self._lanes.leave(job)
        self._unmet.pop(job.id, None)
        self._lanes.release(job.id)
        self._due.pop(job.id, None)
        job.state = state
        del self.jobs[job.id]
        data: dict[str, object] = {"attempt": job.attempt}
        if error is not None:
            data["error"] = error
        event = Event(f"job_{state}", now, self.repo, job.id, data)
        return [JobEnded(job.id, state, error, now, receipt, event)]
