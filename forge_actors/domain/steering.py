"""Steering: what people ask of waiting and running jobs, and of their repository.

A job is held while it waits and suspended while it runs; a pause does the same for all
the jobs it covers, but holds back only the start of those that wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from msgspec import UNSET, structs

from forge_actors.domain.answers import APPROVED
from forge_actors.domain.capacity import direct, provider_token
from forge_actors.domain.changes import (
    JobAnswered,
    JobApproved,
    JobEdited,
    JobHeld,
    JobRedirected,
    Noted,
)
from forge_actors.domain.events import Event
from forge_actors.domain.job_queue import ASKING, JobQueue, awaits_approval
from forge_actors.domain.jobs import JobError, check_move
from forge_actors.domain.pauses import Pauses
from forge_actors.domain.scopes import Pause, repository_scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from forge_actors.domain.accounts import Account
    from forge_actors.domain.changes import Change
    from forge_actors.domain.claims import Claim
    from forge_actors.domain.day_budgets import SpentBudget
    from forge_actors.domain.edits import Edit
    from forge_actors.domain.effects import Approval
    from forge_actors.domain.jobs import AgentChoice, Job, State
    from forge_actors.domain.policies import Policy

#: The reason of a job's own suspension; that of another is the scope of a pause.
ASKED = "asked"

Steering = Literal["hold", "unhold", "pause", "resume"]
STEERINGS: tuple[Steering, ...] = get_args(Steering)
#: What is for jobs that wait, and what is there for those that run.
FOR_RUNNING: dict[Steering, Steering] = {"hold": "pause", "unhold": "resume"}


class Steerable(JobQueue):
    """The part of a ledger's moves that people ask for. A verdict is a refusal."""

    @property
    def scope(self) -> str:
        return repository_scope(self.repo)

    # -- one job ---------------------------------------------------------------------

    def steer(
        self, job_id: str, how: Steering, now: float
    ) -> tuple[list[Change], str | None]:
        """Hold a job or suspend it, or let it go on. Twice is once."""
        job = self.jobs[job_id]
        runs = job_id in self.leases
        if runs and how in FOR_RUNNING:
            return [], for_waiting(job_id, how)
        on = how in ("hold", "pause")
        if on == (job.held_at is not None):
            return [], None
        job.held_at = now if on else None
        return (self._suspend if runs else self._hold)(job, now), None

    def _hold(self, job: Job, now: float) -> list[Change]:
        on = job.held_at is not None
        event = Event("job_held" if on else "job_unheld", now, self.repo, job.id)
        changes: list[Change] = [JobHeld(job.id, job.held_at, event)]
        if job.state == ASKING:
            return changes
        if job.id not in self._unmet and self._retries.due(job.id) is None:
            if on:
                if job.id in self._lanes.ready:
                    self._lanes.leave(job)
                self._agentless.forget(job.id)
                self._lanes.release(job.id)
                held = job.ready_state
                changes += self._wait_in(job, held, now, reason="it is held")
            else:
                self._line_up(job, now)
            self._time(job.id, now)
        return changes

    def _suspend(self, job: Job, now: float) -> list[Change]:
        on = job.held_at is not None
        data: dict[str, object] = {"reason": ASKED}
        pause = self.pauses.suspending(job.tokens)
        if pause is not None:
            data["also"] = pause.scope
        elif on:
            self.suspended.add(job.id)
        else:
            self.suspended.discard(job.id)
        kind = "job_paused" if on else "job_resumed"
        event = Event(kind, now, self.repo, job.id, data)
        return [JobHeld(job.id, job.held_at, event)]

    def answer(
        self, job_id: str, answer: str, reason: str, now: float
    ) -> tuple[list[Change], str | None]:
        """Let a job go on that asks something; `answer` is the digest of the text."""
        job = self.jobs[job_id]
        if awaits_approval(job):
            return [], for_approval(job_id)
        if job.state != ASKING:
            return [], asks_nothing(job_id, job.state)
        check_move(job.state, "queued")
        job.state = "queued"
        self._enter(job, now)
        event = Event("job_queued", now, self.repo, job_id, {"reason": reason})
        return [JobAnswered(job_id, answer, event, attempt=job.attempt)], None

    def approve(
        self, job_id: str, approval: Approval, now: float
    ) -> tuple[list[Change], str | None]:
        """A person allows what a job would do to the outside."""
        job = self.jobs[job_id]
        if not awaits_approval(job):
            return [], asks_nothing(job_id, job.state)
        waits = job_id in self._unmet
        state: State = "waiting_for_dependency" if waits else "queued"
        check_move(job.state, state)
        job.state = state
        data: dict[str, object] = {
            "reason": APPROVED,
            "effects": approval.effects,
            "by": approval.by,
            "how": approval.how,
        }
        event = Event(f"job_{state}", now, self.repo, job_id, data)
        changes: list[Change] = [JobApproved(job_id, approval, event, state)]
        if waits:
            return changes, None
        self._enter(job, now)
        return changes + self.redirect(job, now), None

    def deny(
        self, job_id: str, reason: str, now: float
    ) -> tuple[list[Change], str | None]:
        """End a job that asks something: a person says no."""
        job = self.jobs[job_id]
        if job.state != ASKING:
            return [], asks_nothing(job_id, job.state)
        return self._end(job, "failed", JobError("DENIED", reason), now), None

    def suspended_since(self, job_id: str) -> float | None:
        """Since when its processes are to stand still; None if they are not."""
        if job_id not in self.suspended:
            return None
        job = self.jobs[job_id]
        pause = self.pauses.suspending(job.tokens)
        moments = (job.held_at, None if pause is None else pause.since)
        return min(moment for moment in moments if moment is not None)

    def edit(
        self, job_id: str, edit: Edit, now: float
    ) -> tuple[list[Change], str | None]:
        """Change a job that waits; its place in line is that of what it is now.

        A queue budget that is given begins with the edit.
        """
        job = self.jobs[job_id]
        if job_id in self.leases:
            return [], f"job {job_id} runs: only a job that waits can be edited"
        ready = job_id in self._lanes.ready
        if ready:
            self._lanes.leave(job)
            self._lanes.release(job_id)
        edit.apply(job)
        self._keep_for_check(job)
        if ready:
            self._lanes.enter(job)
        if edit.queue_timeout is not UNSET and job_id not in self._unmet:
            self._budgets.forget(job_id)
            if job.queue_budget is not None:
                self._budgets.begin(job_id, job.queue_budget)
                self._time(job_id, now)
        data: dict[str, object] = {"changed": edit.shown()}
        event = Event("job_edited", now, self.repo, job_id, data)
        return [JobEdited(job_id, edit, event)], None

    # -- where it is -----------------------------------------------------------------

    def relocated(self, claims: Mapping[str, tuple[Claim, ...]]) -> None:
        """The folder of the repository is another one, and so are the claims of these
        jobs, as they were saved, while they wait or run or are kept."""
        for job_id, wanted in claims.items():
            if (left := self.quarantined.get(job_id)) is not None:
                self.quarantined[job_id] = structs.replace(left, claims=wanted)
                continue
            if job_id in self._kept:
                self._kept[job_id] = wanted
            if (job := self.jobs.get(job_id)) is not None:
                self._claim(job, wanted)
        for holder in self.held:
            self._lanes.release(holder)  # what conflicts with it is another job now

    def _claim(self, job: Job, claims: tuple[Claim, ...]) -> None:
        ready = job.id in self._lanes.ready
        if ready:
            self._lanes.leave(job)
            self._lanes.release(job.id)
        job.claims = claims
        if job.id in self.leases:
            self.leases[job.id] = claims
        if ready:
            self._lanes.enter(job)

    # -- pauses ----------------------------------------------------------------------

    def pause(self, now: float, *, jobs: bool) -> list[Change]:
        """Start nothing more in the repository; with `jobs` suspend what runs too."""
        before = Pauses(self.pauses)
        changes = self.pauses.begin(self.scope, now, jobs=jobs, repo=self.repo)
        return changes + self._adjust(before, now)

    def resume(self, now: float, *, jobs: bool) -> list[Change]:
        """End that pause; with `jobs` also what suspended jobs one by one."""
        before = Pauses(self.pauses)
        changes = self.pauses.end(self.scope, now, jobs=jobs, repo=self.repo)
        if jobs:
            changes += self._let_go(Pause(self.scope, now), now)
        return changes + self._adjust(before, now)

    def told_of(
        self, pauses: Iterable[Pause], now: float, *, let_go: str | None = None
    ) -> list[Change]:
        """These are the pauses of all repositories; what was suspended one by one in
        the scope `let_go` goes on."""
        before = Pauses(self.pauses)
        own = self.pauses.get(self.scope)
        self.pauses.replace((*pauses, *(() if own is None else (own,))))
        changes = [] if let_go is None else self._let_go(Pause(let_go, now), now)
        return changes + self._adjust(before, now)

    def told_of_policy(self, policy: Policy | None, now: float) -> list[Change]:
        """This is the policy from now on; None if it keeps nothing from starting."""
        self.policy = policy
        for job in self.jobs.values():
            if job.id in self._lanes.ready:
                if self._keeps_out(job):
                    self._leave_line(job, now)
            elif self._keeps_out(job):
                self._agentless.forget(job.id)
            elif self._is_due(job):
                self._line_up(job, now)
        return self._adjust(self.pauses, now)

    def _is_due(self, job: Job) -> bool:
        """It waits for nothing but its turn, though it may be held."""
        if job.state == ASKING or job.id in self.leases or job.id in self._unmet:
            return False
        lacks = self._agentless.lack_of(job.id) is not None
        return not lacks and self._retries.due(job.id) is None

    def told_of_accounts(
        self,
        closed: Iterable[Account],
        tried: frozenset[str],
        now: float,
        spent: Iterable[SpentBudget] = (),
    ) -> list[Change]:
        """These accounts are closed; those with these tokens a job may try. These
        budgets are spent, some of them those of other repositories."""
        self.accounts = {account.token: account for account in closed}
        mine = {each.token: each for each in spent if each.repo in (None, self.repo)}
        self.accounts |= mine
        self._tried = tried - mine.keys()
        changes = self._adjust(self.pauses, now)
        jobs = [job for job in self.jobs.values() if job.choices]
        return changes + [c for job in jobs for c in self.redirect(job, now)]

    def redirect_all(self, now: float) -> list[Change]:
        """Let each waiting job that several agents may do have the first that can."""
        if not (self.accounts or self._agentless):
            return []
        jobs = [job for job in self.jobs.values() if job.choices]
        return [change for job in jobs for change in self.redirect(job, now)]

    def redirect(self, job: Job, now: float) -> list[Change]:
        """The same for this one."""
        choice = None
        if job.choices and job.id not in self.leases and not job.checking:
            choice = self._first_able(job)
        if choice is None or choice.name == job.agent:
            return []
        ready = job.id in self._lanes.ready
        if ready:
            self._lanes.leave(job)
            self._lanes.release(job.id)
        lacked = self._agentless.lack_of(job.id) is not None
        self._agentless.forget(job.id)
        data: dict[str, object] = {"agent": choice.name, "before": job.agent}
        data["provider"] = choice.provider
        direct(job, choice)
        if ready or lacked:
            self._lanes.enter(job)
            self._time(job.id, now)
        event = Event("job_redirected", now, self.repo, job.id, data)
        return [JobRedirected(job.id, choice, event)]

    def _first_able(self, job: Job) -> AgentChoice | None:
        """The first of its agents whose account is open and whose program is there."""
        for choice in job.choices:
            account = self.accounts.get(provider_token(choice.provider))
            if account is None and self._agentless.problem_of(choice.name) is None:
                return choice
        return None

    def _let_go(self, where: Pause, now: float) -> list[Change]:
        changes: list[Change] = []
        for job in [self.jobs[name] for name in self.leases]:
            if job.held_at is not None and where.covers(job.tokens):
                job.held_at = None
                changes += self._suspend(job, now)
        return changes

    def _adjust(self, before: Pauses, now: float) -> list[Change]:
        """Act on pauses that began or ended since `before`."""
        policy = self.policy
        halted = policy if policy is not None and policy.halts else None
        self._paused = self.pauses.everywhere or halted
        barred = self.accounts.keys() - self._tried
        self._lanes.close(self.pauses.closed_tokens | barred)
        for job_id in self._budgets.jobs():
            self._time(job_id, now)
        changes: list[Change] = []
        for job_id in self.leases:
            job = self.jobs[job_id]
            pause = self.pauses.suspending(job.tokens)
            suspend = pause is not None or job.held_at is not None
            if suspend == (job_id in self.suspended):
                continue
            (self.suspended.add if suspend else self.suspended.discard)(job_id)
            cause = pause or before.suspending(job.tokens)
            assert cause is not None, "only a pause that began or ended changes this"
            kind = "job_paused" if suspend else "job_resumed"
            data: dict[str, object] = {"reason": cause.scope}
            changes.append(Noted(Event(kind, now, self.repo, job_id, data)))
        return changes


def for_approval(job_id: str) -> str:
    return (
        f"job {job_id} asks nothing: it waits for a person to allow what it does;"
        f" forge-actors approve {job_id} does, deny {job_id} ends it"
    )


def asks_nothing(job_id: str, state: State) -> str:
    return f"job {job_id} asks nothing: it is {state}"


def for_waiting(job_id: str, how: Steering) -> str:
    """The refusal to hold a job that runs."""
    other = FOR_RUNNING[how]
    return f"job {job_id} runs: {how} is for jobs that wait; use {other}"
