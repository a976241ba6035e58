"""The ledger: one repository's queue and leases. Each move returns (changes, verdict).

What it holds, and what each job waits for, is in `job_queue`; what people may ask of it
is in `steering`.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from forge_actors.domain.accounts import LONGEST_TRY
from forge_actors.domain.attempt_reports import told
from forge_actors.domain.capacity import go_to_step, offer_of
from forge_actors.domain.changes import (
    JobDispatched,
    JobIsolated,
    JobRan,
    JobRequeued,
    Noted,
)
from forge_actors.domain.events import Event
from forge_actors.domain.isolation import checkout_claims, isolated
from forge_actors.domain.job_queue import ASKING
from forge_actors.domain.jobs import JobError, check_move
from forge_actors.domain.recovery import Evidence, decide, fits
from forge_actors.domain.remains import Remains
from forge_actors.domain.worktrees import Isolation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.domain.capacity import Offer, RepositoryLimits
    from forge_actors.domain.changes import Change
    from forge_actors.domain.claims import Claim
    from forge_actors.domain.jobs import Job, JobSpec, State
    from forge_actors.domain.lanes import Lane, Tokens
    from forge_actors.domain.launch import ProcessIdentity, Receipt
    from forge_actors.domain.recovery import Outcome, StopReason

#: Jobs looked at, and waiting states saved, at one pass; the rest is told when
#: somebody asks.
LOOKED_AT_ONCE = 1000
ANNOUNCED_AT_ONCE = 100

#: Jobs that a job is said to have been isolated from.
MOST_NAMED = 8
#: Why a job that waited for its next attempt is queued.
DUE = "its next attempt is due"


class Ledger(Remains):
    """The queue and the leases of one repository. Only its actor's task holds one."""

    # -- moves -----------------------------------------------------------------------

    def add(self, job: Job, unmet: Iterable[str], now: float) -> list[Change]:
        """Take in a job that was accepted, or one that was saved as waiting."""
        assert job.id not in self.jobs, "a job is added once"
        self.jobs[job.id] = job
        unseen = job.attempt == 0 and job.state != ASKING
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
        self._keep_for_check(job)
        waits_for = set(unmet)
        if waits_for:
            self._unmet[job.id] = waits_for
            for dependency in waits_for:
                self._dependents.setdefault(dependency, []).append(job.id)
            return []
        if job.state in ("waiting_for_retry", "waiting_for_limit"):
            return self._admit(job, now, reason=DUE)
        self._enter(job, now)
        return self.redirect(job, now)

    def adopt(self, job: Job) -> None:
        """Take in a job that was saved as dispatched or running."""
        self.jobs[job.id] = job
        self.leases[job.id] = job.claims
        if job.held_at is not None or self.pauses.suspending(job.tokens) is not None:
            self.suspended.add(job.id)

    def set_limits(self, limits: RepositoryLimits) -> None:
        """Go by other limits from now on; what runs is left alone."""
        self.workers, self.backoff = limits.workers, limits.backoff
        self._lanes.set_limits(
            limits.overtake_after, limits.known, isolates=limits.isolates
        )

    def dependency_ended(
        self, dependency: str, state: State, now: float
    ) -> list[Change]:
        """A job that others wait for has ended: they may start, or can never."""
        changes: list[Change] = []
        self._just_ended.discard(dependency)
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
                changes += self._admit(job, now, reason="dependencies met")
        return changes

    def expire(self, now: float) -> list[Change]:
        """End the jobs whose queue budget has run out, let in whose moment has come."""
        changes: list[Change] = []
        for job_id in self._retries.take_due(now, self.backoff.longest):
            job = self.jobs[job_id]
            job.retry_at = None
            changes += self._admit(job, now, reason=DUE)
        while (first := self._budgets.first()) is not None and first[0] <= now:
            job = self.jobs[first[1]]
            error = JobError("QUEUE_TIMEOUT", "it could not start in time")
            changes += self._end(job, "timed_out", error, now)
        return changes

    def dispatch(
        self, tokens: Tokens, now: float, *, ahead: bool = False
    ) -> tuple[list[Change], Job | None]:
        """Give the best job that needs these tokens its leases and its fence.

        One that is `ahead` has its tokens by the time at which its start or its end is
        told here.
        """
        if not self._may_start():
            return [], None
        job = self._lanes.best(tokens, self.held, now)
        while job and job.agent is not None and self._agentless.keeps(job, now):
            self._leave_line(job, now)
            job = self._lanes.best(tokens, self.held, now)
        if job is None:
            return [], None
        isolated = self._isolate(job, now)
        self._lanes.start(job, now, isolated=bool(isolated))
        if job.queue_budget is not None:
            self._budgets.forget(job.id)
        check_move(job.state, "dispatched")
        self.fence += 1
        job.state, job.fence, job.attempt = "dispatched", self.fence, job.attempt + 1
        self.leases[job.id] = job.claims
        if job.verify is not None:
            self._kept.pop(job.id, None)
        data: dict[str, object] = {
            "attempt": job.attempt,
            "fence": self.fence,
            "tokens": tokens,
            "claims": job.claims,
        }
        kind = "job_dispatched"
        if ahead:
            kind, self._ahead[job.id] = "job_readied", data
        event = Event(kind, now, self.repo, job.id, data)
        change = JobDispatched(job.id, self.repo, job.attempt, self.fence, now, event)
        return [*isolated, change], job

    def _isolate(self, job: Job, now: float) -> list[Change]:
        """Give a job a worktree if only the checkout of others is in its way."""
        holders = self._lanes.in_the_way(job, self.held, now) if job.isolatable else ()
        if not holders:
            return []
        before = job.claims
        job.claims, job.isolatable = isolated(before, job.id), False
        data: dict[str, object] = {
            "reason": f"{holders[0]} has its checkout",
            "blockers": holders,
            "claims": job.claims,
        }
        event = Event("job_auto_isolated", now, self.repo, job.id, data)
        isolation = Isolation(instead_of=holders[:MOST_NAMED], claims=before)
        return [JobIsolated(job.id, job.claims, isolation, event)]

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
        assert job.fence is not None, "a dispatch gave it one"
        ran = JobRan(job.id, attempt, job.fence, identity, now, event)
        readied = self._ahead.pop(job_id, None) if self._ahead else None
        if readied is None:
            return [ran]
        return [Noted(Event("job_dispatched", now, self.repo, job_id, readied)), ran]

    def finish(
        self,
        job_id: str,
        attempt: int,
        receipt: Receipt | None,
        stopped: StopReason | None,
        now: float,
        *,
        child: str | None = None,
        spec: JobSpec | None = None,
        ahead: float = 0.0,
        attended: bool = True,
    ) -> tuple[list[Change], Outcome | None]:
        """An attempt is over. None if it is not the current one, or not as it was
        dispatched: that changes nothing but the diagnostics.

        `child` is the job that it handed its work to, `ahead` the wall clock is ahead
        of `now`, and `attended` that it may wait for a person. On its `spec` only the
        end of what was lost, or can have no worktree, depends.
        """
        job = self._current(job_id, attempt)
        if job is None or job_id not in self.leases or not fits(job, receipt):
            return [] if receipt is None else self.refuse(receipt, now), None
        ran: list[Change] = []
        if receipt is not None and receipt.identity is not None:
            # Of a quick job nobody told the start; the end's own row says all of it.
            starts = self.started(job_id, attempt, receipt.identity, now)
            ran += (Noted(start.event) for start in starts if start.event)
        elif self._ahead:
            self._ahead.pop(job_id, None)
        budget = None if spec is None else spec.budgets.execution
        overdue = budget is not None and self._is_overdue(job, receipt, budget, now)
        checkout = None if spec is None else checkout_claims(spec)
        back = checkout is not None and receipt is not None and receipt.no_worktree
        known = Evidence(receipt, stopped, child, overdue, now, ahead, attended, back)
        outcome = decide(job, known, self.backoff)
        ran += told(job, receipt, now)
        if not outcome.again:
            fence = job.fence
            ended = self._end(
                job, outcome.state, outcome.error, now, receipt, outcome.accepted
            )
            if receipt is not None and receipt.remaining:
                ended += self._quarantine(job, fence or receipt.fence, receipt, now)
            return ran + ended, outcome
        self._free(job_id)
        check_move(job.state, outcome.state)
        fence = job.fence
        assert fence is not None, "a dispatch gave it one"
        never = receipt is not None and receipt.ending == "withdrawn"
        place = job.queued_at if never else None
        job.state, job.fence = outcome.state, None
        job.queued_at, job.started_at = now if place is None else place, None
        if outcome.verify is not None:
            go_to_step(job, outcome.verify)
        self._keep_for_check(job)
        returned: list[Change] = []
        if outcome.returns and checkout is not None:
            returned = self._return(job, checkout, receipt, now)
        job.refused += outcome.uncounted
        job.retry_at = now + outcome.delay if outcome.delay else None
        data: dict[str, object] = {"attempt": attempt}
        if outcome.error:
            data["error"] = outcome.error
        if outcome.delay:
            data["delay"] = round(outcome.delay, 3)
        if outcome.verify is not None:
            data["step"] = outcome.verify.step
        event = Event(f"job_{job.state}", now, self.repo, job_id, data)
        if outcome.delay:
            longest = LONGEST_TRY if outcome.refusal else None
            self._retries.add(job_id, now + outcome.delay, longest)
        else:
            self._enter(job, now)
        retry_at = job.retry_at
        error = outcome.error
        again = JobRequeued(
            job_id,
            attempt,
            fence,
            job.state,
            error,
            now,
            event,
            retry_at,
            job.refused,
            outcome.verify,
            place,
        )
        return [*ran, again, *returned], outcome

    def _return(
        self, job: Job, claims: tuple[Claim, ...], receipt: Receipt | None, now: float
    ) -> list[Change]:
        """It waits for its checkout after all, and is not isolated again."""
        job.claims = claims
        reason = None if receipt is None else receipt.error
        data: dict[str, object] = {"reason": reason, "claims": claims}
        event = Event("job_unisolated", now, self.repo, job.id, data)
        return [JobIsolated(job.id, claims, None, event)]

    def _is_overdue(
        self, job: Job, receipt: Receipt | None, budget: float, now: float
    ) -> bool:
        """Whether it had run for longer than that when it was lost."""
        began = None if receipt is None else receipt.started_at
        began = job.started_at if began is None else began
        if began is None:
            return False
        ended = now if receipt is None else receipt.ended_at - receipt.paused_seconds
        stood_still = self.suspended_since(job.id)
        return (ended if stood_still is None else stood_still) >= began + budget

    def refuse(self, receipt: Receipt, now: float) -> list[Change]:
        """A receipt of another attempt: it changes nothing, and is told."""
        data: dict[str, object] = {"attempt": receipt.attempt, "fence": receipt.fence}
        job = self.jobs.get(receipt.job)
        if job is not None:
            data["current"] = {"attempt": job.attempt, "fence": job.fence}
        return [Noted(Event("receipt_refused", now, self.repo, receipt.job, data))]

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
        for able in self._agentless.take_able():
            self._line_up(self.jobs[able], now)
            self._time(able, now)
        self._lanes.reconsider()
        changes = self.redirect_all(now)
        states: dict[Lane, State | None] = {}
        for job, lane, _ in islice(self._lanes.ready.values(), LOOKED_AT_ONCE):
            if len(changes) >= ANNOUNCED_AT_ONCE:
                break
            if lane not in states:
                states[lane] = self._state_in_lane(job, now)
            if states[lane] == job.state:
                continue
            waiting = self.waiting(job.id, now)
            changes += self._wait_in(
                job, self.state_of(job.id, waiting), now, reason=waiting.detail
            )
        return changes

    def _state_in_lane(self, job: Job, now: float) -> State | None:
        """The state of all jobs that need what this ready one needs, or None.

        A reservation holds back those that come after it, so each is asked for then.
        """
        waiting = self.waiting(job.id, now)
        reserved = waiting.kind == "token" and self._lanes.reservations(now)
        if waiting.kind == "reservation" or reserved:
            return None
        return self.state_of(job.id, waiting)

    # -- questions -------------------------------------------------------------------

    def offers(self, now: float) -> tuple[Offer, ...]:
        """The best job that could start, for each set of tokens that jobs need."""
        if not self._may_start():
            return ()
        lanes = self._lanes
        held = self.held
        bests = (lanes.best(tokens, held, now) for tokens in lanes.tokens())
        return tuple(offer_of(job) for job in bests if job is not None)

    # -- inside ----------------------------------------------------------------------

    def _current(self, job_id: str, attempt: int) -> Job | None:
        job = self.jobs.get(job_id)
        return job if job is not None and job.attempt == attempt else None
