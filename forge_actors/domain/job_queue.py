"""The queue: what a repository's ledger holds, and what each of its jobs waits for.

Jobs that wait for others or for their next attempt are kept here; those that are ready
are in its lanes. One that is held, that a policy keeps out, or whose agent program is
not there, is in neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from forge_actors.domain.accounts import BACKS_OFF, LONGEST_TRY, waiting_for
from forge_actors.domain.agentless import Agentless
from forge_actors.domain.backoff import DEFAULT, Backoff, Retries
from forge_actors.domain.blockers import rank_of
from forge_actors.domain.budgets import QueueBudgets
from forge_actors.domain.changes import JobEnded, JobWaits, SetAside, TakenBack
from forge_actors.domain.events import Event
from forge_actors.domain.in_line import behind, held_back
from forge_actors.domain.jobs import check_move
from forge_actors.domain.lanes import Lanes
from forge_actors.domain.pauses import Pauses
from forge_actors.domain.poison import Poison
from forge_actors.domain.policies import waiting_for as waiting_for_policy
from forge_actors.domain.priority import PRIORITIES, bound
from forge_actors.domain.scopes import describe
from forge_actors.domain.waiting import Waiting, for_gone, for_person, state_for_family

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.domain.accounts import Account
    from forge_actors.domain.agentless import AgentProblem
    from forge_actors.domain.changes import Change
    from forge_actors.domain.claims import Claim
    from forge_actors.domain.day_budgets import SpentBudget
    from forge_actors.domain.jobs import Job, JobError, State
    from forge_actors.domain.lanes import Lane
    from forge_actors.domain.launch import Receipt
    from forge_actors.domain.policies import Policy
    from forge_actors.domain.quarantine import Quarantine
    from forge_actors.domain.scopes import Pause


#: Jobs and lanes that are looked at for the most urgent of what an end lets start.
RIVALS = 64
#: The state of a job whose agent asks something, or that would do something to the
#: outside that nobody has allowed.
ASKING: State = "waiting_for_approval"


def awaits_approval(job: Job) -> bool:
    """It waits for a person to allow what it does; only what ran can ask something."""
    return job.state == ASKING and job.attempt == 0


class JobQueue:
    """The jobs of one repository that have not ended, and their leases.

    Invariants: a job is in `jobs` until it has ended; `leases.keys()` are exactly the
    jobs that are dispatched or running; no two leases conflict; a queue budget goes on
    exactly while its job is ready and no pause covers it.
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
        pause: Pause | None = None,
        backoff: Backoff = DEFAULT,
        isolates: bool = False,
        agent_problem: AgentProblem | None = None,
        quarantined: Iterable[Quarantine] = (),
        poisoned: Iterable[Poison] = (),
    ) -> None:
        self.repo = repo
        self.fence = fence
        self.enabled = enabled
        self.workers = workers
        self.jobs: dict[str, Job] = {}
        self.leases: dict[str, tuple[Claim, ...]] = {}
        #: What ended jobs left, whose claims are held like leases.
        self.quarantined = {each.job: each for each in quarantined}
        #: Jobs that are left alone, and under no name the repository itself; of those
        #: that ran the claims are held.
        self.poisoned = {each.job: each for each in poisoned}
        #: The same of those whose work is to be checked: nobody is to come between.
        self._kept: dict[str, tuple[Claim, ...]] = {}
        #: Of the jobs with leases, those whose processes are to stand still.
        self.suspended: set[str] = set()
        #: Of those that were dispatched ahead, what they are to take.
        self._ahead: dict[str, dict[str, object]] = {}
        self._unmet: dict[str, set[str]] = {}
        self._dependents: dict[str, list[str]] = {}
        #: Jobs of its own that ended, which those that run after them do not know yet.
        self._just_ended: set[str] = set()
        self._lanes = Lanes(overtake_after, known, isolates=isolates)
        self._agentless = Agentless(agent_problem)
        self._budgets = QueueBudgets()
        self.backoff = backoff
        self._retries = Retries()
        #: Those that concern this repository: its own, and what its owner told of.
        self.pauses = Pauses(() if pause is None else (pause,))
        #: The closed ones by their tokens, and those of them that a job may try.
        self.accounts: dict[str, Account | SpentBudget] = {}
        self._tried: frozenset[str] = frozenset()
        #: The one that keeps every job from starting, if there is one.
        self._paused: Pause | Policy | None = pause
        #: The policy, if it keeps anything from starting.
        self.policy: Policy | None = None

    # -- what it holds ---------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """It owns no queued job, no lease and no running worker, and keeps no claim."""
        return not (self.jobs or self.quarantined or self._kept)

    @property
    def held(self) -> dict[str, tuple[Claim, ...]]:
        """The claims that are held, by the jobs that hold them or left them held."""
        if not (self.quarantined or self._kept):
            return self.leases
        left = {each.job: each.claims for each in self.quarantined.values()}
        return left | self._kept | self.leases

    def unmet(self, job: str) -> frozenset[str]:
        """The jobs that must succeed before this one may start."""
        return frozenset(self._unmet.get(job, ()))

    def rival(self) -> int | None:
        """The best priority of those that the end of a job here may let start: that of
        all there may be, if they are too many to look at."""
        found = self._lanes.priorities_parked(RIVALS)
        for job in (*self.leases, *self._just_ended):
            waiters = self._dependents.get(job, ())
            if len(waiters) + len(found) > RIVALS:
                return 0
            found += [self.jobs[w].priority for w in waiters if w in self.jobs]
        return min(found, default=None)

    def next_deadline(self) -> float | None:
        """When the next queue budget runs out or attempt is due, by the wall clock."""
        budget, retry = self._budgets.first(), self._retries.first()
        if budget is None or (retry is not None and retry < budget[0]):
            return retry
        return budget[0]

    # -- what is left alone ------------------------------------------------------------

    def set_aside(self, job_id: str, error: str, now: float) -> list[Change]:
        """Leave a job alone from now on; it stays what it is in the store."""
        job = self.jobs.get(job_id)
        if job is not None:
            self._take_out(job)
        poison = Poison(self.repo, error, now, job_id)
        self.poisoned[job_id] = poison
        data: dict[str, object] = {"reason": error}
        event = Event("job_set_aside", now, self.repo, job_id, data)
        return [SetAside(poison, event)]

    def take_back(self, now: float) -> list[Change]:
        """The repository itself was set aside, and works again."""
        if self.poisoned.pop("", None) is None:
            return []
        event = Event("repository_taken_back", now, self.repo)
        return [TakenBack(self.repo, event, job="")]

    def keep_aside(self, job: Job) -> None:
        """One that is left alone may run: nobody else gets what it claims."""
        self._kept[job.id] = job.claims

    def _take_out(self, job: Job) -> None:
        """Take a job out of everything that knows of it."""
        if job.id in self.leases:
            self._free(job.id)
        else:
            self._wait_no_more(job)
        self.jobs.pop(job.id, None)

    # -- questions -------------------------------------------------------------------

    def state_of(self, job_id: str, waiting: Waiting | None) -> State:
        """The state to show: what a waiting job waits for now, not when last saved."""
        job = self.jobs[job_id]
        if waiting is None:
            return job.state
        if waiting.kind == "approval":
            return ASKING
        if job_id in self._unmet:
            return "waiting_for_dependency"
        if waiting.kind == "retry":
            return "waiting_for_retry"
        if waiting.kind == "limit":
            return "waiting_for_limit"
        blocked = waiting.kind in ("claim", "reservation") and waiting.resource
        if not blocked:
            return job.ready_state
        claim = next(c for c in job.claims if str(c) == waiting.resource)
        return state_for_family(claim.family)

    def waiting(
        self, job_id: str, now: float, alike: dict[Lane, Waiting] | None = None
    ) -> Waiting:
        """What keeps a waiting job from being offered; kind `token` if nothing does.

        `alike` has what was found at the same moment for others that need the same.
        """
        job = self.jobs[job_id]
        gone = self._lanes.unknown(job.tokens)
        if gone is not None:
            return for_gone(gone, job.queued_at)
        if job.state == ASKING:
            return for_person(job_id, job.queued_at, asks=not awaits_approval(job))
        if job.held_at is not None:
            detail = f"it is held; forge-actors unhold {job_id} lets it go on"
            return Waiting("pause", job.held_at, detail)
        unmet = self._unmet.get(job_id)
        if unmet:
            names = tuple(sorted(unmet))
            detail = f"it runs after {', '.join(names)}"
            return Waiting("dependency", job.queued_at, detail, holders=names)
        due = self._retries.due(job_id)
        if due is not None:
            if job.state != "waiting_for_limit":
                detail = f"attempt {job.counted + 1}"
                return Waiting("retry", job.queued_at, detail, until=due)
            return Waiting("limit", job.queued_at, BACKS_OFF, until=due)
        if not self.enabled:
            return Waiting("disabled", job.queued_at, "its repository is disabled")
        pause = self.pauses.covering(job.tokens)
        if pause is not None:
            detail = describe(pause.scope)
            return Waiting("pause", pause.since, detail)
        if self.policy is not None and (self._paused or self._keeps_out(job)):
            return waiting_for_policy(self.policy, job.queued_at)
        lack = self._agentless.lack_of(job_id)
        if lack is not None:
            return Waiting("agent", lack.since, lack.reason, resource=lack.agent)
        account = self._account(job.tokens)
        if account is not None:
            closed = waiting_for(account)
            return replace(closed, since=max(job.queued_at, closed.since))
        lanes, lane = self._lanes, self._lanes.ready[job_id][1]
        since = max(job.queued_at, lane.since)
        same = None if alike is None or lanes.reservations(now) else alike.get(lane)
        if same is None:
            held, left = self.held, self.quarantined
            found, note = held_back(job, since, lanes, held, left, now)
            same = found or behind(self.leases, self.workers, since, note)
            if alike is not None:
                alike[lane] = same
        return same if same.since == since else replace(same, since=since)

    def ahead_of(self, job_id: str, now: float) -> int:
        """How many ready jobs of this repository with the same tokens come first."""
        mine = self.jobs[job_id]
        place = rank_of(mine, now)
        bounds = [bound(level, place, now) for level in range(len(PRIORITIES))]
        return sum(
            1
            for other, _, entry in self._lanes.ready.values()
            if entry < bounds[other.priority] and other.tokens == mine.tokens
        )

    # -- inside ----------------------------------------------------------------------

    def _account(self, tokens: Iterable[str]) -> Account | SpentBudget | None:
        """The closed account or spent budget that a job with these tokens waits for."""
        if not self.accounts:
            return None
        return next((a for t in tokens if (a := self.accounts.get(t))), None)

    def _may_start(self) -> bool:
        if self._paused is not None:
            return False
        return self.enabled and len(self.leases) < self.workers

    def _admit(self, job: Job, now: float, *, reason: str) -> list[Change]:
        """It waits for no other job: from here on for its next attempt, or to start."""
        if job.state == ASKING:
            return []
        due, limited = job.retry_at, job.state == "waiting_for_limit"
        if (limited or job.state == "waiting_for_retry") and due and due > now:
            self._retries.add(job.id, due, LONGEST_TRY if limited else None)
            return []
        changes: list[Change] = []
        if not (limited and self._account(job.tokens)):
            changes = self._wait_in(job, job.ready_state, now, reason=reason)
        self._enter(job, now)
        return changes

    def _enter(self, job: Job, now: float) -> None:
        """Nothing but a hold, a pause or a lack keeps it from starting from here on,
        unless it waits for a person."""
        if job.state == ASKING:
            return
        self._line_up(job, now)
        started = job.verify is not None and job.verify.begun
        if job.queue_budget is not None and not started:
            self._budgets.begin(job.id, job.queue_budget)
            self._time(job.id, now)

    def _line_up(self, job: Job, now: float) -> None:
        """Let it start, unless it is held or something else keeps it from that."""
        kept = job.held_at is not None or self._keeps_out(job)
        if not (kept or self._agentless.keeps(job, now)):
            self._lanes.enter(job)

    def _keeps_out(self, job: Job) -> bool:
        return self.policy is not None and self.policy.keeps_out(job.work)

    def _leave_line(self, job: Job, now: float) -> None:
        """While it was ready its program has gone away, or a policy keeps it out."""
        self._lanes.leave(job)
        self._lanes.release(job.id)
        self._time(job.id, now)

    def _time(self, job_id: str, now: float) -> None:
        """Let its queue budget go on, or stand still."""
        ready = self._lanes.ready.get(job_id)
        tokens = None if ready is None else ready[0].tokens
        paused = self._paused or (tokens and self.pauses.covering(tokens))
        if tokens is None or paused or self._account(tokens):
            self._budgets.stand_still(job_id, now)
        else:
            self._budgets.go_on(job_id, now)

    def _keep_for_check(self, job: Job) -> None:
        """The work of its agent stays as it is until it is checked."""
        if job.checking:
            self._kept[job.id] = job.claims

    def _wait_no_more(self, job: Job) -> None:
        """Neither to start nor for others; one that has a lease has done so before."""
        self._kept.pop(job.id, None)
        if job.id in self._lanes.ready:
            self._lanes.leave(job)
        self._agentless.forget(job.id)
        self._lanes.release(job.id)
        self._unmet.pop(job.id, None)
        self._retries.forget(job.id)
        self._budgets.forget(job.id)

    def _free(self, job_id: str) -> None:
        del self.leases[job_id]
        self.suspended.discard(job_id)
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
        accepted: str | None = None,
    ) -> list[Change]:
        check_move(job.state, state)
        fence = None
        if job.id in self.leases:
            fence = job.fence
            self._free(job.id)
        else:
            self._wait_no_more(job)
        job.state = state
        del self.jobs[job.id]
        if job.id in self._dependents:
            self._just_ended.add(job.id)
        data: dict[str, object] = {"attempt": job.attempt}
        if error is not None:
            data["error"] = error
        if accepted is not None:
            data["accepted"] = accepted
        event = Event(f"job_{state}", now, self.repo, job.id, data)
        at = now
        if receipt is not None and job.started_at is not None:
            # While no service was there nobody heard of it when it ended.
            at = min(now, max(receipt.ended_at, job.started_at))
        attempt = job.attempt
        return [JobEnded(job.id, attempt, fence, state, error, at, receipt, event)]
