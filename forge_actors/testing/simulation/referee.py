"""The referee: what must hold, looked at whenever a row is saved or a process begins.

It keeps books of its own, from what was saved and from what really ran, and asks no
part of the product what is right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.capacity import ACTIVE_REPOSITORIES
from forge_actors.domain.changes import (
    JobAdded,
    JobDispatched,
    JobEdited,
    JobEnded,
    JobHeld,
    JobRan,
    JobRequeued,
    JobWaits,
    PauseBegan,
    PauseEnded,
    RepositoryAdded,
    RepositoryChanged,
)
from forge_actors.domain.claims import Claim, first_conflict
from forge_actors.domain.jobs import MOVES, RESERVED, TERMINAL, Replay, State
from forge_actors.domain.scopes import Pause, repository_of

if TYPE_CHECKING:
    from forge_actors.domain.changes import Change
    from forge_actors.domain.launch import Receipt
    from forge_actors.testing.simulation.machine import Process
    from forge_actors.testing.simulation.world import World

#: Waiting this long raises a job by one step, as design/semantics.md says.
AGEING_SECONDS = 1800.0
#: Seconds that news may take from the store to a repository's actor.
NEWS_SECONDS = 1.0


class Violation(Exception):
    """Something that must hold does not. `rule` names it."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule


class Case(Struct):
    """What the referee knows of one job."""

    job: str
    repo: str
    state: State
    priority: int
    replay: Replay
    claims: tuple[Claim, ...]
    tokens: tuple[str, ...]
    after: tuple[str, ...]
    queued_at: float
    #: On trio's clock: since when its repository's actor surely knows of it.
    known_at: float
    held: bool = False
    attempt: int = 0
    fence: int | None = None
    #: Attempts whose process began.
    begun: int = 0
    cancelled: bool = False


class Referee:
    """Judges one run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.cases: dict[str, Case] = {}
        self.acknowledged: set[str] = set()
        self.pairs: set[tuple[State, State]] = set()
        self.steps = 0
        self._fences: dict[str, int] = {}
        self._begun_fences: set[tuple[str, int]] = set()
        self._pauses: dict[str, Pause] = {}
        self._removed: set[str] = set()
        #: Claims of trees that could not be proven gone, by job, for each repository.
        self._quarantined: dict[str, dict[str, tuple[Claim, ...]]] = {}

    # -- questions -------------------------------------------------------------------

    @property
    def open_cases(self) -> list[Case]:
        """The jobs that have not ended."""
        return [case for case in self.cases.values() if case.state not in TERMINAL]

    def fail(self, rule: str, what: str) -> None:
        """Say so; the run ends with the first one."""
        self._world.failed(Violation(rule, what))

    # -- what is saved ---------------------------------------------------------------

    def saved(self, change: Change, epoch: int) -> None:
        """A change is durable, written by the runtime of this epoch."""
        self.steps += 1
        world = self._world
        if epoch != world.epoch:
            self.fail("one writer", f"epoch {epoch} wrote after {world.epoch}")
        match change:
            case JobAdded():
                self._added(change)
            case JobWaits(job_id, state) | JobRequeued(job_id, state):
                case_ = self._move(job_id, state)
                if type(change) is JobRequeued:
                    self._requeued(case_, change)
            case JobDispatched():
                self._dispatched(change)
            case JobRan(job_id):
                self._move(job_id, "running")
            case JobEnded():
                self._ended(change)
            case JobHeld(job_id, since):
                self.cases[job_id].held = since is not None
                self.cases[job_id].known_at = world.now + NEWS_SECONDS
            case JobEdited():
                self._edited(change)
            case PauseBegan(pause):
                self._pauses[pause.scope] = pause
            case PauseEnded(scope):
                self._pauses.pop(scope, None)
            case RepositoryAdded(repository):
                self._fences[repository.id] = 0
            case RepositoryChanged(repository):
                if repository.removed_at is not None:
                    self._retired(repository.id)
            case _:
                pass
        world.note("saved", type(change).__name__, change.event.job, change.event.kind)

    def committed(self) -> None:
        """All changes of one commit are saved."""
        self._world.changed()

    def _added(self, change: JobAdded) -> None:
        job = change.job
        if job.id in self.cases:
            self.fail("one id, one job", f"{job.id} is added again")
        if job.repo in self._removed:
            self.fail("removed means removed", f"{job.id} is accepted in {job.repo}")
        self.cases[job.id] = Case(
            job=job.id,
            repo=job.repo,
            state=job.state,
            priority=job.priority,
            replay=job.replay,
            claims=job.claims,
            tokens=job.tokens,
            after=job.after,
            queued_at=job.queued_at,
            known_at=self._world.now + NEWS_SECONDS,
        )

    def _move(self, job_id: str, state: State) -> Case:
        case = self.cases[job_id]
        before = case.state
        if before in TERMINAL:
            self.fail("ended means ended", f"{job_id} goes from {before} to {state}")
        elif state not in MOVES[before]:
            self.fail("legal moves", f"{job_id} goes from {before} to {state}")
        self.pairs.add((before, state))
        case.state = state
        return case

    def _requeued(self, case: Case, change: JobRequeued) -> None:
        self._free(case)
        case.queued_at = change.at
        case.known_at = self._world.now + NEWS_SECONDS
        process = self._world.machine.history.get((case.job, case.attempt))
        if case.replay == "never" and process is not None:
            self.fail("never means once", f"{case.job} began and is queued again")

    def _free(self, case: Case) -> None:
        """Its leases end here: nothing of it may run, unless that is known."""
        process = self._world.machine.processes.get((case.job, case.attempt))
        if process is not None and case.job not in self._quarantined.get(case.repo, {}):
            self.fail("leases outlive processes", f"{case.job} still runs, unnamed")
        case.fence = None

    def _ended(self, change: JobEnded) -> None:
        case = self.cases[change.job]
        ran = case.state in RESERVED
        self._move(change.job, change.state)
        if ran:
            self._free(case)
        process = self._world.machine.history.get((case.job, case.attempt))
        ended = None if process is None else process.ended
        if change.state == "succeeded" and (ended is None or ended.exit_code != 0):
            self.fail("an end is what it was", f"{case.job} did not exit with 0")
        self._judge_receipt(change.receipt)
        for other in self.open_cases:
            if change.job in other.after:
                other.known_at = self._world.now + NEWS_SECONDS
        if (
            ended is not None
            and ended.exit_code == 0
            and change.receipt is not None
            and change.receipt.ending == "exit"
            and change.state != "succeeded"
        ):
            self.fail("an end is what it was", f"{case.job} exited 0: {change.state}")
        if change.state == "cancelled" and not case.cancelled:
            self.fail("cancelled when asked", f"nobody cancelled {case.job}")

    def _judge_receipt(self, receipt: Receipt | None) -> None:
        if receipt is None or receipt.ending != "exit":
            return
        process = self._world.machine.history[receipt.job, receipt.attempt]
        if process.fence != receipt.fence:
            self.fail("a receipt of its own", f"{receipt.job}: another one's receipt")

    def _edited(self, change: JobEdited) -> None:
        case = self.cases[change.job]
        edit = change.edit
        if isinstance(edit.priority, int):
            case.priority = edit.priority
        if isinstance(edit.claims, tuple):
            case.claims = edit.claims
        case.known_at = self._world.now + NEWS_SECONDS
        if case.state in RESERVED or case.state in TERMINAL:
            self.fail("only what waits is edited", f"{change.job} is {case.state}")

    def _retired(self, repo: str) -> None:
        self._removed.add(repo)
        active = [case.job for case in self.open_cases if case.repo == repo]
        if active:
            self.fail("removed means removed", f"{repo} has {', '.join(active)}")

    # -- dispatches ------------------------------------------------------------------

    def _dispatched(self, change: JobDispatched) -> None:
        case = self.cases[change.job]
        if change.fence <= self._fences.get(change.repo, 0):
            self.fail("fences grow", f"{change.job} has {change.fence} again")
        if change.attempt != case.attempt + 1:
            self.fail("attempts are counted", f"{change.job}: {change.attempt}")
        self._fences[change.repo] = change.fence
        self._judge_order(case, change.at)
        self._move(change.job, "dispatched")
        case.attempt, case.fence = change.attempt, change.fence
        self._judge_leases(case)
        self._judge_limits(case)
        self._judge_start(case)

    def _judge_leases(self, case: Case) -> None:
        for other in self.cases.values():
            if (
                other is not case
                and other.repo == case.repo
                and other.state in RESERVED
                and first_conflict(case.claims, other.claims)
            ):
                self.fail("leases never conflict", f"{case.job} and {other.job}")
        for job, claims in self._quarantined.get(case.repo, {}).items():
            if first_conflict(case.claims, claims):
                self.fail("quarantined leases hold", f"{case.job} and {job}")

    def _judge_limits(self, case: Case) -> None:
        limits = self._world.limits
        reserved = [each for each in self.cases.values() if each.state in RESERVED]
        for token in case.tokens:
            used = sum(token in each.tokens for each in reserved)
            if used > limits.tokens.get(token, 0):
                self.fail("limits hold", f"{case.job} makes {used} {token}")
        repos = len({each.repo for each in reserved})
        if repos > limits.active_repositories:
            self.fail("limits hold", f"{case.job}: {repos} {ACTIVE_REPOSITORIES}")
        here = sum(each.repo == case.repo for each in reserved)
        if here > self._world.repository_workers:
            self.fail("limits hold", f"{case.job} makes {here} in {case.repo}")

    def _judge_start(self, case: Case) -> None:
        if case.held:
            self.fail("held means held", f"{case.job} is dispatched")
        for pause in self._pauses.values():
            if repository_of(pause.scope) in (None, case.repo) and pause.covers(
                case.tokens
            ):
                self.fail("paused means paused", f"{case.job} in {pause.scope}")
        if case.repo in self._removed:
            self.fail("removed means removed", f"{case.job} is dispatched")
        for name in case.after:
            if self.cases[name].state != "succeeded":
                self.fail("after means after", f"{case.job} before {name}")

    def _judge_order(self, case: Case, at: float) -> None:
        """None like it that comes first, and was known and ready, is passed over."""
        mine = self._rank(case, at)
        for other in self.open_cases:
            if (
                other.repo == case.repo
                and other is not case
                and other.state not in RESERVED
                and other.state != "waiting_for_retry"
                and other.claims == case.claims
                and other.tokens == case.tokens
                and not other.held
                and other.known_at <= self._world.now
                and not any(self.cases[n].state != "succeeded" for n in other.after)
                and self._rank(other, at) < mine
            ):
                self.fail("order", f"{case.job} before {other.job}")

    def _rank(self, case: Case, at: float) -> tuple[int, float, str]:
        raised = max(0, int(max(0.0, at - case.queued_at) // AGEING_SECONDS))
        return max(0, case.priority - raised), case.queued_at, case.job

    # -- what runs -------------------------------------------------------------------

    def began(self, process: Process) -> None:
        """A process begins, whoever wanted it to."""
        self.steps += 1
        key, fence, repo = process.key, process.fence, process.repo
        name, attempt = key
        case = self.cases[name]
        job = self._world.rows.jobs[name]
        if key in self._world.machine.history:
            self.fail("one attempt, one process", f"{key} begins again")
        if job.state not in RESERVED or job.attempt != attempt:
            self.fail("saved, then started", f"{key} begins while {job.state}")
        elif case.fence != fence:
            self.fail("saved, then started", f"{key} begins with another fence")
        case.begun += 1
        if case.replay == "never" and case.begun > 1:
            self.fail("never means once", f"{name} begins a second time")
        if (repo, fence) in self._begun_fences:
            self.fail("fences grow", f"{key} begins with a fence that was used")
        self._begun_fences.add((repo, fence))
        for other in self._world.machine.processes.values():
            if other.repo == repo:
                held = self.cases[other.key[0]].claims
                if first_conflict(case.claims, held):
                    self.fail("one at a time", f"{name} beside {other.key[0]}")

    # -- what callers are told -------------------------------------------------------

    def accepted(self, job: str) -> None:
        """Somebody was told that this job is accepted."""
        self.acknowledged.add(job)
        if job not in self._world.rows.jobs:
            self.fail("saved, then answered", f"{job} is acknowledged, not saved")

    def asked_to_cancel(self, job: str) -> None:
        self.cases[job].cancelled = True
