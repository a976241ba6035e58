"""The ledger against a simple model, under random moves."""

from __future__ import annotations

from collections import deque
from itertools import combinations
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from forge_actors.domain.changes import JobEnded, JobWaits
from forge_actors.domain.claims import conflict, first_conflict
from forge_actors.domain.jobs import RESERVED, Job, Kind, Replay, State
from forge_actors.domain.ledger import Ledger
from tests.domain.ledger_kit import CLAIMS, KINDS, TOKENS, WORKERS, place
from tests.domain.making import (
    AT_ONCE,
    FAILURE,
    IDENTITY,
    INTERRUPTED,
    SUCCESS,
    end_attempt,
    make_job,
)
from tests.examples import examples

if TYPE_CHECKING:
    from forge_actors.domain.changes import Change
    from forge_actors.domain.launch import Receipt
    from forge_actors.domain.waiting import WaitingKind


class Model(RuleBasedStateMachine):
    """What a repository's actor does to its ledger, in any order."""

    overtake_after = float("inf")
    isolates = False
    #: What jobs are of.
    works: tuple[str | None, ...] = (None,)

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.ledger = Ledger(
            "repo",
            workers=WORKERS,
            overtake_after=self.overtake_after,
            backoff=AT_ONCE,
            isolates=self.isolates,
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

    def kept_out(self, job: Job) -> WaitingKind | None:
        """What keeps it from starting besides, where something does."""
        return None

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
        job.isolatable = self.isolates and kind == "agent-run"
        job.work = data.draw(st.sampled_from(self.works))
        self.jobs[job.id] = job
        if after:
            self.unmet[job.id] = set(after)
        else:
            self.enters(job)
        assert self.ledger.add(job, after, self.now) == []

    @initialize(data=st.data(), count=st.integers(1, 6))
    def begin_with_some(self, data: st.DataObject, count: int) -> None:
        for _ in range(count):
            claims = data.draw(st.sampled_from(CLAIMS))
            kind = data.draw(st.sampled_from(KINDS))
            provider = data.draw(st.sampled_from([None, "local"]))
            self.add(data, claims, kind, 2, "safe", None, False, provider)

    @rule(seconds=st.sampled_from([0.0, 1.0, 60.0, 1800.0, -30.0]))
    def wait(self, seconds: float) -> None:
        self.now = max(0.0, self.now + seconds)

    @rule()
    def offer(self) -> None:
        offers = {offer.tokens: offer.job for offer in self.ledger.offers(self.now)}
        bests = {tokens: self.best(tokens) for tokens in TOKENS}
        assert offers == {tokens: job.id for tokens, job in bests.items() if job}

    def offered(self) -> list[tuple[str, ...]]:
        return [tokens for tokens in TOKENS if self.best(tokens)]

    @precondition(lambda self: self.offered())
    @rule(data=st.data())
    def dispatch_what_is_offered(self, data: st.DataObject) -> None:
        self.dispatch(data.draw(st.sampled_from(self.offered())))

    @rule(tokens=st.sampled_from(TOKENS))
    def dispatch(self, tokens: tuple[str, ...]) -> None:
        best = self.best(tokens)
        changes, job = self.ledger.dispatch(tokens, self.now)
        assert job is best
        self.judge(changes, job)
        if job is not None:
            self.dispatches += 1
            self.due.pop(job.id, None)
            assert job.held_at is None
            assert (job.state, job.fence) == ("dispatched", self.dispatches)

    def judge(self, changes: list[Change], job: Job | None) -> None:
        """What a dispatch changes."""
        assert len(changes) == (job is not None)

    @precondition(lambda self: self.ledger.leases)
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        job = self.pick(data, reserved=True)
        if job is not None:
            was = job.state
            changes = self.ledger.started(job.id, job.attempt, IDENTITY, self.now)
            assert len(changes) == (was == "dispatched")
            assert job.state == "running"

    @precondition(lambda self: self.ledger.leases)
    @rule(data=st.data(), receipt=st.sampled_from([SUCCESS, FAILURE, INTERRUPTED]))
    def finish(self, data: st.DataObject, receipt: Receipt) -> None:
        job = self.pick(data, reserved=True)
        if job is None:
            return
        changes, outcome = end_attempt(
            self.ledger, job.id, job.attempt, receipt, None, self.now
        )
        assert outcome is not None
        if outcome.again:
            assert (job.state, job.fence, job.queued_at) == ("queued", None, self.now)
            self.enters(job)
        self.settle(changes)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def hear_old_news(self, data: st.DataObject) -> None:
        job = self.jobs[data.draw(st.sampled_from(sorted(self.jobs)))]
        before = (job.state, job.attempt, job.fence)
        for attempt in (job.attempt - 1, job.attempt + 1):
            nothing = end_attempt(self.ledger, job.id, attempt, SUCCESS, None, self.now)
            [refused], outcome = nothing
            assert (refused.event.kind, outcome) == ("receipt_refused", None)
            assert not self.ledger.started(job.id, attempt, IDENTITY, self.now)
        assert (job.state, job.attempt, job.fence) == before

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), reserved=st.booleans())
    def cancel(self, data: st.DataObject, reserved: bool) -> None:
        job = self.pick(data, reserved=reserved)
        if job is not None:
            changes, runs = self.ledger.cancel(job.id, self.now)
            assert runs is reserved
            assert len(changes) == (not runs)
            self.settle(changes)

    @rule(enabled=st.sampled_from([True, True, False]))
    def enable(self, enabled: bool) -> None:
        self.ledger.enabled = enabled

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

    @precondition(lambda self: self.jobs)
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
        elif (kind := self.kept_out(job)) is not None:
            assert waiting.kind == kind
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
    max_examples=examples(150), stateful_step_count=50
)
