"""The ledger against a simple model, under random moves."""

from __future__ import annotations

from collections import deque
from copy import copy
from itertools import combinations
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec import UNSET

from forge_actors.domain.changes import JobEnded, JobHeld, JobWaits, Noted
from forge_actors.domain.claims import conflict, first_conflict
from forge_actors.domain.edits import Edit
from forge_actors.domain.jobs import RESERVED, Job, Kind, Replay, State
from forge_actors.domain.ledger import Ledger
from forge_actors.domain.pauses import Pause
from tests.domain.ledger_kit import CLAIMS, KINDS, TOKENS, WORKERS, place
from tests.domain.making import FAILURE, IDENTITY, INTERRUPTED, SUCCESS, make_job

if TYPE_CHECKING:
    from forge_actors.domain.changes import Change
    from forge_actors.domain.launch import Receipt
    from forge_actors.domain.steering import Steering


class Model(RuleBasedStateMachine):
    """What a repository's actor does to its ledger, in any order."""

    overtake_after = float("inf")

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.ledger = Ledger(
            "repo", workers=WORKERS, overtake_after=self.overtake_after
        )
        self.jobs: dict[str, Job] = {}
        self.ended: dict[str, State] = {}
        self.unmet: dict[str, set[str]] = {}
        #: Queue budgets that go on, and what is left of those that stand still.
        self.due: dict[str, float] = {}
        self.left: dict[str, float] = {}
        #: By scope, whether they suspend jobs too.
        self.pauses: dict[str, bool] = {}
        self.dispatches = 0
        self.made = 0

    # -- the model -------------------------------------------------------------------

    def is_free(self, job: Job) -> bool:
        held = [claim for claims in self.ledger.leases.values() for claim in claims]
        return first_conflict(job.claims, held) is None

    def ready(self) -> list[Job]:
        return [
            job
            for job in self.jobs.values()
            if job.state not in RESERVED
            and job.held_at is None
            and not self.unmet.get(job.id)
        ]

    def is_paused(self, job: Job, *, running: bool = False) -> bool:
        return any(
            (not scope.startswith("provider:") or scope in job.tokens)
            for scope, jobs in self.pauses.items()
            if jobs or not running
        )

    def best(self, tokens: tuple[str, ...]) -> Job | None:
        if not self.ledger.enabled or len(self.ledger.leases) >= WORKERS:
            return None
        able = [
            job
            for job in self.ready()
            if job.tokens == tokens and self.is_free(job) and not self.is_paused(job)
        ]
        return min(able, key=lambda job: place(job, self.now), default=None)

    def enters(self, job: Job) -> None:
        if job.queue_budget is not None:
            self.left[job.id] = job.queue_budget
            self.set_clocks()

    def set_clocks(self) -> None:
        """A budget goes on while nothing but room is lacking."""
        ready = {job.id for job in self.ready() if not self.is_paused(job)}
        for name in [name for name in self.due if name not in ready]:
            self.left[name] = self.due.pop(name) - self.now
        for name in [name for name in self.left if name in ready]:
            self.due[name] = self.now + self.left.pop(name)

    def settle(self, changes: list[Change]) -> None:
        """Tell those that wait for jobs that ended, as the store would."""
        news = deque(change for change in changes if isinstance(change, JobEnded))
        while news:
            ended = news.popleft()
            self.ended[ended.job] = ended.state
            del self.jobs[ended.job]
            self.unmet.pop(ended.job, None)
            self.due.pop(ended.job, None)
            self.left.pop(ended.job, None)
            waiters = [name for name, on in self.unmet.items() if ended.job in on]
            more = self.ledger.dependency_ended(ended.job, ended.state, self.now)
            lost = {change.job for change in more if isinstance(change, JobEnded)}
            assert lost == (set(waiters) if ended.state != "succeeded" else set())
            news.extend(change for change in more if isinstance(change, JobEnded))
            for name in lost:
                del self.unmet[name]
            for name in set(waiters) - lost:
                self.unmet[name].discard(ended.job)
                if not self.unmet[name]:
                    self.enters(self.jobs[name])

    def pick(self, data: st.DataObject, *, reserved: bool) -> Job | None:
        names = [n for n, j in self.jobs.items() if (j.state in RESERVED) == reserved]
        return self.jobs[data.draw(st.sampled_from(names))] if names else None

    # -- moves -----------------------------------------------------------------------

    @rule(
        data=st.data(),
        claims=st.sampled_from(CLAIMS),
        kind=st.sampled_from(KINDS),
        priority=st.integers(0, 4),
        replay=st.sampled_from(["never", "safe"]),
        budget=st.sampled_from([None, None, 50.0, 4000.0]),
        depends=st.booleans(),
        provider=st.sampled_from([None, "local"]),
    )
    def add(
        self,
        data: st.DataObject,
        claims: tuple[str, ...],
        kind: Kind,
        priority: int,
        replay: Replay,
        budget: float | None,
        depends: bool,
        provider: str | None,
    ) -> None:
        self.made += 1
        after: list[str] = []
        if depends and self.jobs:
            after = data.draw(st.lists(st.sampled_from(sorted(self.jobs)), max_size=2))
        job = make_job(
            f"j{self.made}",
            *claims,
            kind=kind,
            provider=provider,
            priority=priority,
            queued_at=self.now,
            replay=replay,
            queue_budget=budget,
            state="waiting_for_dependency" if after else "queued",
            after=tuple(after),
        )
        self.jobs[job.id] = job
        if after:
            self.unmet[job.id] = set(after)
        else:
            self.enters(job)
        assert self.ledger.add(job, after, self.now) == []

    @rule(seconds=st.sampled_from([0.0, 1.0, 60.0, 1800.0, -30.0]))
    def wait(self, seconds: float) -> None:
        self.now = max(0.0, self.now + seconds)

    @rule()
    def offer(self) -> None:
        offers = {offer.tokens: offer.job for offer in self.ledger.offers(self.now)}
        bests = {tokens: self.best(tokens) for tokens in TOKENS}
        assert offers == {tokens: job.id for tokens, job in bests.items() if job}

    @rule(tokens=st.sampled_from(TOKENS))
    def dispatch(self, tokens: tuple[str, ...]) -> None:
        best = self.best(tokens)
        changes, job = self.ledger.dispatch(tokens, self.now)
        assert job is best
        assert len(changes) == (best is not None)
        if job is not None:
            self.dispatches += 1
            self.due.pop(job.id, None)
            assert job.held_at is None
            assert (job.state, job.fence) == ("dispatched", self.dispatches)

    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        job = self.pick(data, reserved=True)
        if job is not None:
            was = job.state
            changes = self.ledger.started(job.id, job.attempt, IDENTITY, self.now)
            assert len(changes) == (was == "dispatched")
            assert job.state == "running"

    @rule(data=st.data(), receipt=st.sampled_from([SUCCESS, FAILURE, INTERRUPTED]))
    def finish(self, data: st.DataObject, receipt: Receipt) -> None:
        job = self.pick(data, reserved=True)
        if job is None:
            return
        changes, outcome = self.ledger.finish(
            job.id, job.attempt, receipt, None, self.now
        )
        assert outcome is not None
        if outcome.again:
            assert (job.state, job.fence, job.queued_at) == ("queued", None, self.now)
            self.enters(job)
        self.settle(changes)

    @rule(data=st.data())
    def hear_old_news(self, data: st.DataObject) -> None:
        if self.jobs:
            job = self.jobs[data.draw(st.sampled_from(sorted(self.jobs)))]
            before = (job.state, job.attempt, job.fence)
            for attempt in (job.attempt - 1, job.attempt + 1):
                nothing = self.ledger.finish(job.id, attempt, SUCCESS, None, self.now)
                assert nothing == ([], None)
                assert not self.ledger.started(job.id, attempt, IDENTITY, self.now)
            assert (job.state, job.attempt, job.fence) == before

    @rule(data=st.data(), reserved=st.booleans())
    def cancel(self, data: st.DataObject, reserved: bool) -> None:
        job = self.pick(data, reserved=reserved)
        if job is not None:
            changes, runs = self.ledger.cancel(job.id, self.now)
            assert runs is reserved
            assert len(changes) == (not runs)
            self.settle(changes)

    @rule(enabled=st.booleans())
    def enable(self, enabled: bool) -> None:
        self.ledger.enabled = enabled

    @rule(data=st.data(), how=st.sampled_from(["hold", "unhold", "pause", "resume"]))
    def steer(self, data: st.DataObject, how: Steering) -> None:
        if not self.jobs:
            return
        job = self.jobs[data.draw(st.sampled_from(sorted(self.jobs)))]
        was = job.held_at
        changes, refusal = self.ledger.steer(job.id, how, self.now)
        if job.state in RESERVED and how in ("hold", "unhold"):
            assert (refusal is not None, changes, job.held_at) == (True, [], was)
            return
        on = how in ("hold", "pause")
        assert (refusal, job.held_at is not None) == (None, on)
        said = sum(isinstance(change, JobHeld) for change in changes)
        assert said == (on != (was is not None))
        self.set_clocks()

    @rule(
        data=st.data(),
        priority=st.integers(0, 4),
        claims=st.sampled_from([None, *CLAIMS]),
        budget=st.sampled_from(["keep", None, 50.0, 4000.0]),
    )
    def edit(
        self,
        data: st.DataObject,
        priority: int,
        claims: tuple[str, ...] | None,
        budget: float | str | None,
    ) -> None:
        if not self.jobs:
            return
        job = self.jobs[data.draw(st.sampled_from(sorted(self.jobs)))]
        wanted = UNSET if claims is None else make_job("x", *claims).claims
        edit = Edit(
            priority=priority,
            claims=wanted,
            queue_timeout=UNSET if isinstance(budget, str) else budget,
        )
        before = copy(job)
        changes, refusal = self.ledger.edit(job.id, edit, self.now)
        if job.state in RESERVED:
            assert (refusal is not None, changes, job) == (True, [], before)
            return
        assert (refusal, len(changes), job.priority) == (None, 1, priority)
        assert job.claims == (before.claims if wanted is UNSET else wanted)
        if not isinstance(budget, str):
            self.due.pop(job.id, None)
            self.left.pop(job.id, None)
            if not self.unmet.get(job.id):
                self.enters(job)

    @rule(
        scope=st.sampled_from(["all", "repo:repo", "provider:local"]),
        on=st.booleans(),
        jobs=st.booleans(),
    )
    def pause(self, scope: str, on: bool, jobs: bool) -> None:
        if on:
            self.pauses[scope] = self.pauses.get(scope, False) or jobs
        else:
            self.pauses.pop(scope, None)
        before = set(self.ledger.suspended)
        if scope == "repo:repo":
            move = self.ledger.pause if on else self.ledger.resume
            changes = move(self.now, jobs=jobs)
        else:
            outer = [
                Pause(name, self.now, suspends)
                for name, suspends in self.pauses.items()
                if name != "repo:repo"
            ]
            let_go = scope if jobs and not on else None
            changes = self.ledger.told_of(outer, self.now, let_go=let_go)
        if jobs and not on:
            where = Pause(scope, self.now)
            here = (job for job in self.jobs.values() if where.covers(job.tokens))
            assert not any(j.held_at is not None and j.state in RESERVED for j in here)
        said = {c.event.job for c in changes if isinstance(c, Noted | JobHeld)}
        assert before ^ self.ledger.suspended <= said
        self.set_clocks()

    @rule()
    def expire(self) -> None:
        late = {name for name, due in self.due.items() if due <= self.now}
        changes = self.ledger.expire(self.now)
        assert {c.job for c in changes if isinstance(c, JobEnded)} == late
        self.settle(changes)

    @rule()
    def announce(self) -> None:
        for change in self.ledger.announce(self.now):
            assert isinstance(change, JobWaits)
            assert self.jobs[change.job].state == change.state
        assert self.ledger.announce(self.now) == []

    @rule(data=st.data())
    def explain(self, data: st.DataObject) -> None:
        job = self.pick(data, reserved=False)
        if job is None:
            return
        waiting = self.ledger.waiting(job.id, self.now)
        if job.held_at is not None:
            assert (waiting.kind, waiting.since) == ("pause", job.held_at)
            assert "unhold" in waiting.detail
            return  # it may have been held before it was queued again
        if self.unmet.get(job.id):
            assert (waiting.kind, set(waiting.holders)) == (
                "dependency",
                self.unmet[job.id],
            )
        elif not self.ledger.enabled:
            assert waiting.kind == "disabled"
        elif self.is_paused(job):
            assert waiting.kind == "pause"
            return  # since when it is paused
        elif not self.is_free(job):
            assert waiting.kind == "claim"
            [holder] = waiting.holders
            held = self.ledger.leases[holder]
            assert first_conflict(job.claims, held) is not None
        else:
            assert waiting.kind == "token"
        assert waiting.since >= job.queued_at

    # -- what always holds -----------------------------------------------------------

    @invariant()
    def the_leases_are_those_of_the_reserved_jobs(self) -> None:
        reserved = {n for n, job in self.jobs.items() if job.state in RESERVED}
        assert self.ledger.leases.keys() == reserved
        assert len(reserved) <= WORKERS

    @invariant()
    def no_two_leases_conflict(self) -> None:
        for one, other in combinations(self.ledger.leases.values(), 2):
            assert not any(conflict(a, b) for a in one for b in other)

    @invariant()
    def what_stands_still_is_what_a_pause_or_a_person_suspended(self) -> None:
        assert self.ledger.suspended == {
            name
            for name, job in self.jobs.items()
            if job.state in RESERVED
            and (job.held_at is not None or self.is_paused(job, running=True))
        }

    @invariant()
    def the_fence_is_the_number_of_dispatches(self) -> None:
        assert self.ledger.fence == self.dispatches

    @invariant()
    def it_holds_the_jobs_that_have_not_ended(self) -> None:
        assert self.ledger.jobs.keys() == self.jobs.keys()
        assert self.ledger.idle is (not self.jobs)

    @invariant()
    def the_next_deadline_is_the_first_queue_budget_that_runs_out(self) -> None:
        assert self.ledger.next_deadline() == min(self.due.values(), default=None)


test_a_ledger_does_what_the_model_says = Model.TestCase
test_a_ledger_does_what_the_model_says.settings = settings(
    max_examples=150, stateful_step_count=50, deadline=None
)
