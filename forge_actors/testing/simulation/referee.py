"""The referee: what must hold, looked at whenever a row is saved or a process begins.

It keeps books of its own, from what was saved and from what really ran, and asks no
part of the product what is right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.capacity import WORKERS
from forge_actors.domain.changes import (
    AccountChanged,
    JobAdded,
    JobAnswered,
    JobApproved,
    JobDispatched,
    JobEdited,
    JobEnded,
    JobHeld,
    JobIsolated,
    JobRan,
    JobRequeued,
    JobWaits,
    Noted,
    PauseBegan,
    PauseEnded,
    Quarantined,
    QuarantineEnded,
    RepositoryChanged,
)
from forge_actors.domain.claims import first_conflict
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import MOVES, RESERVED, TERMINAL, State
from forge_actors.domain.policy_changes import PolicySet
from forge_actors.testing.simulation.accounts import AccountRules, waits_for_checkout
from forge_actors.testing.simulation.approvals import ApprovalRules
from forge_actors.testing.simulation.books import NEWS_SECONDS, Case
from forge_actors.testing.simulation.dispatches import Dispatches
from forge_actors.testing.simulation.ends import Ends
from forge_actors.testing.simulation.short import withdrawn
from forge_actors.testing.simulation.steps import StepRules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.domain.changes import Change
    from forge_actors.domain.claims import Claim
    from forge_actors.domain.jobs import Job
    from forge_actors.domain.relocation import Relocation
    from forge_actors.testing.simulation.machine import Process
    from forge_actors.testing.simulation.world import World


class Referee:
    """Judges one run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._books = world.books
        self._dispatches = Dispatches(world)
        self._ends = Ends(world)
        self.accounts = AccountRules(world)
        self.steps_of_jobs = StepRules(world)
        self.approvals = ApprovalRules(world)
        self.acknowledged: dict[str, None] = {}
        #: The moves that jobs made.
        self.pairs: dict[tuple[State, State], None] = {}
        #: Rows saved and processes begun.
        self.steps = 0
        #: The cases whose leases end with this move.
        self._freed: list[Case] = []
        self._begun_fences: set[tuple[str, int]] = set()

    def starts(self, now: float) -> None:
        """A runtime begins at this moment, by the wall clock as it is."""
        for case in self._books.open_cases:
            # A clock that was set back makes nobody wait from a later moment on.
            case.ahead = False  # what runs is taken over, whatever the limits are
            saved = self._world.rows.jobs[case.job].queued_at
            case.queued_at = min(saved, now)

    def reloaded(self, jobs: Iterable[Job]) -> None:
        """An actor was given its jobs, with these moments."""
        for job in jobs:
            case = self._books.cases.get(job.id)
            if case is not None:
                case.queued_at = job.queued_at

    # -- what is saved ---------------------------------------------------------------

    def saved(self, change: Change, epoch: int) -> None:
        """A change is durable, written by the runtime of this epoch."""
        self.steps += 1
        world, books = self._world, self._books
        if epoch != world.epoch:
            world.fail("one writer", f"epoch {epoch} wrote after {world.epoch}")
        match change:
            case JobAdded():
                self._added(change)
            case JobWaits(job, state):
                self._move(job, state)
            case JobDispatched():
                self._dispatched(change, epoch)
            case JobRan(job):
                self._move(job, "running")
            case JobRequeued():
                self._requeued(change, epoch)
            case JobEnded():
                self._ended(change)
            case JobApproved(job, state=state):
                self.approvals.approved(change)
                self._news_for(self._move(job, state))
            case JobAnswered(job, state=state):
                self._news_for(self._move(job, state))
            case JobHeld(job, since):
                books.cases[job].held = since is not None
                self._news_for(books.cases[job])
            case JobEdited():
                self._edited(change)
            case JobIsolated(job, claims, None):
                books.cases[job].claims = claims
                self._news_for(books.cases[job])
            case JobIsolated(job, claims):
                self._isolated(books.cases[job], claims)
            case AccountChanged(account):
                self.accounts.changed(change, epoch)
                for case in books.open_cases:
                    if account.token in case.tokens:
                        self._news_for(case)
            case PauseBegan(pause):
                books.pauses[pause.scope] = pause
            case PauseEnded(scope):
                books.pauses.pop(scope, None)
            case PolicySet(policy):
                books.policy = policy
                for case in books.open_cases:
                    self._news_for(case)
            case Quarantined(left):
                books.quarantined.setdefault(left.repo, {})[left.job] = left.claims
            case QuarantineEnded(job):
                self._ends.judge_release(job)
                repo = books.cases[job].repo
                books.quarantined.get(repo, {}).pop(job, None)
            case RepositoryChanged(repository):
                if repository.removed_at is not None:
                    self._retired(repository.id)
                if change.moved is not None:
                    self._relocated(repository.id, change.moved)
            case Noted(Event(kind="job_dispatched", job=str(job))):
                self._dispatches.judge_tokens(books.cases[job])
                books.cases[job].ahead = False
            case _:
                pass
        event = change.event
        told = () if event is None else (event.job, event.kind)
        world.note("saved", type(change).__name__, *told)

    def moved(self) -> None:
        """All of one move is saved: what it says of leases goes together."""
        freed, self._freed = self._freed, []
        for case in freed:
            self._ends.judge_leases(case)

    def _added(self, change: JobAdded) -> None:
        job, books, fail = change.job, self._books, self._world.fail
        if job.id in books.cases:
            fail("one id, one job", f"{job.id} is added again")
        if job.repo in books.removed:
            fail("removed means removed", f"{job.id} is accepted in {job.repo}")
        books.cases[job.id] = Case(
            job=job.id,
            repo=job.repo,
            state=job.state,
            priority=job.priority,
            replay=job.replay,
            max_attempts=job.max_attempts,
            claims=job.claims,
            tokens=job.tokens,
            after=job.after,
            queued_at=job.queued_at,
            isolatable=job.isolatable,
            work=job.work,
            known_at=self._world.now + NEWS_SECONDS,
        )
        self.steps_of_jobs.added(books.cases[job.id], job.verify)
        self.approvals.added(change)

    def _news_for(self, case: Case) -> None:
        """Something about it changed, which its actor may not know yet."""
        case.known_at = self._world.now + NEWS_SECONDS

    def _move(self, job: str, state: State) -> Case:
        case = self._books.cases[job]
        before, fail = case.state, self._world.fail
        if before in TERMINAL:
            fail("ended means ended", f"{job} goes from {before} to {state}")
        elif state not in MOVES[before]:
            fail("legal moves", f"{job} goes from {before} to {state}")
        self.pairs[before, state] = None
        case.state = state
        case.ahead = case.ahead and state in RESERVED
        return case

    def _dispatched(self, change: JobDispatched, epoch: int) -> None:
        case = self._books.cases[change.job]
        self.accounts.judge(case, change, epoch)
        self._dispatches.judge(case, change)
        self.approvals.dispatched(case)
        self._move(change.job, "dispatched")
        case.ahead = change.event.kind == "job_readied"
        if case.ahead:
            case.limits = self._world.limits.tokens
        case.attempt, case.fence = change.attempt, change.fence
        self._books.fences[change.repo] = change.fence

    def _requeued(self, change: JobRequeued, epoch: int) -> None:
        case = self._books.cases[change.job]
        steps = self.steps_of_jobs.requeued(case, change)
        if withdrawn(self._world, case, change):
            case.refused = change.refused
        elif self.accounts.judge_requeue(case, change):
            case.begun -= 1  # it is not one of those that it may have
        elif change.state == "waiting_for_approval" or waits_for_checkout(case, change):
            case.begun -= 1  # nor is this one
            case.refused = change.refused
        elif not steps:
            self._ends.judge_requeue(case, change, epoch)
        self._freed.append(case)
        self._move(change.job, change.state)
        place = change.queued_at
        case.fence, case.queued_at = None, change.at if place is None else place
        self._news_for(case)

    def _ended(self, change: JobEnded) -> None:
        case = self._books.cases[change.job]
        if case.reserved:
            self.steps_of_jobs.ended(case, change)
            self._ends.judge_end(case, change)
            self._freed.append(case)
        else:
            self._ends.judge_early_end(case, change)
        if change.state == "cancelled" and not case.cancelled:
            self._world.fail("cancelled when asked", f"nobody cancelled {case.job}")
        self._move(change.job, change.state)
        case.fence = None
        for other in self._books.open_cases:
            if change.job in other.after:
                self._news_for(other)

    def _edited(self, change: JobEdited) -> None:
        case, edit = self._books.cases[change.job], change.edit
        if not case.waiting:
            what = f"{change.job} is {case.state}"
            self._world.fail("only what waits is edited", what)
        if isinstance(edit.priority, int):
            case.priority = edit.priority
        if isinstance(edit.claims, tuple):
            case.claims = edit.claims
        self._news_for(case)

    def _isolated(self, case: Case, claims: tuple[Claim, ...]) -> None:
        if not (case.isolatable and case.waiting):
            what = f"{case.job} is {case.state}"
            self._world.fail("only what may be is isolated", what)
        if not self._dispatches.is_blocked(case):
            self._world.fail("isolated only if it must be", case.job)
        case.claims, case.isolatable = claims, False

    def _relocated(self, repo: str, moved: Relocation) -> None:
        for case in self._books.open_cases:
            if case.repo == repo:
                case.claims = moved.claims(case.claims)
                self._news_for(case)
        kept = self._books.quarantined.get(repo, {})
        for job, claims in kept.items():
            kept[job] = moved.claims(claims)

    def _retired(self, repo: str) -> None:
        self._books.removed.add(repo)
        self._books.quarantined.pop(repo, None)
        active = [case.job for case in self._books.open_cases if case.repo == repo]
        if active:
            self._world.fail("removed means removed", f"{repo} has {active}")

    # -- what runs -------------------------------------------------------------------

    def began(self, process: Process) -> None:
        """A process begins, whoever wanted it to."""
        self.steps += 1
        fail, books = self._world.fail, self._books
        key, fence, repo = process.key, process.fence, process.repo
        name, attempt = key
        case, job = books.cases[name], self._world.rows.jobs[name]
        if key in self._world.machine.history:
            fail("one attempt, one process", f"{key} begins again")
        if job.state not in RESERVED or job.attempt != attempt:
            fail("saved, then started", f"{key} begins while {job.state}")
        elif case.fence != fence:
            fail("saved, then started", f"{key} begins with another fence")
        workers = max(self._world.limits.tokens[WORKERS], case.limits.get(WORKERS, 0))
        # What was lost and may still run has its claims, and no tokens.
        running = [books.cases[job] for job, _ in self._world.machine.processes]
        running = [each for each in running if each.reserved]
        if len(running) > workers and any(each.ahead for each in running):
            fail("limits hold", f"{key} begins where there is no room")
        case.begun += 1
        self.steps_of_jobs.began(case, process)
        if case.replay == "never" and case.begun > 1 and not process.checks:
            fail("never means once", f"{name} begins a second time")
        if (repo, fence) in self._begun_fences:
            fail("fences grow", f"{key} begins with a fence that was used")
        self._begun_fences.add((repo, fence))
        for other in self._world.machine.processes.values():
            if other.repo == repo:
                held = books.cases[other.key[0]].claims
                if first_conflict(case.claims, held):
                    fail("one at a time", f"{name} beside {other.key[0]}")

    # -- what callers are told -------------------------------------------------------

    def accepted(self, job: str) -> None:
        """Somebody was told that this job is accepted."""
        self.acknowledged[job] = None
        if job not in self._world.rows.jobs:
            what = f"{job} is acknowledged, not saved"
            self._world.fail("saved, then answered", what)

    def cancels(self, job: str) -> None:
        """Somebody asks for the end of a job."""
        self._books.cases[job].cancelled = True

    def stopping(self, job: str, attempt: int, epoch: int) -> None:
        """Somebody was told by the runtime of this epoch that it stops this attempt."""
        self._books.cases[job].stopped_by = (epoch, attempt)

    def told(self, what: str, *, holds: bool) -> None:
        """Somebody was told that this is done: then it is durable."""
        if not holds:
            self._world.fail("saved, then answered", what)
