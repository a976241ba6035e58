"""The ledger against a simple model, under random moves."""

from __future__ import annotations

from collections import deque
from itertools import combinations
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from forge_actors.domain.capacity import tokens_for
from forge_actors.domain.changes import JobEnded, JobWaits
from forge_actors.domain.claims import conflict, first_conflict
from forge_actors.domain.jobs import RESERVED, Job, Kind, Replay, State
from forge_actors.domain.ledger import Ledger
from forge_actors.domain.priority import rank
from tests.domain.making import FAILURE, IDENTITY, INTERRUPTED, SUCCESS, make_job

if TYPE_CHECKING:
    from forge_actors.domain.changes import Change
    from forge_actors.domain.launch import Receipt

WORKERS = 3
CLAIMS = [
    (),
    ("write:path:a",),
    ("write:path:b",),
    ("read:path:a",),
    ("read:path:a", "write:path:b"),
    ("write:path:a", "write:path:b"),
    ("write:git-ref:x",),
    ("exclusive:repo-content:*",),
    ("read:workspace", "write:release:1"),
]
KINDS: list[Kind] = ["repository-command", "check", "agent-run"]
TOKENS = [tokens_for(kind, None) for kind in KINDS]


def place(job: Job, now: float) -> tuple[int, float, str]:
    return rank(job.priority, job.queued_at, job.id, now)


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
        self.due: dict[str, float] = {}
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
            if job.state not in RESERVED and not self.unmet.get(job.id)
        ]

    def best(self, tokens: tuple[str, ...]) -> Job | None:
        if not self.ledger.enabled or len(self.ledger.leases) >= WORKERS:
            return None
        able = [j for j in self.ready() if j.tokens == tokens and self.is_free(j)]
        return min(able, key=lambda job: place(job, self.now), default=None)

    def enters(self, job: Job) -> None:
        if job.queue_budget is not None:
            self.due[job.id] = self.now + job.queue_budget

    def settle(self, changes: list[Change]) -> None:
        """Tell those that wait for jobs that ended, as the store would."""
        news = deque(change for change in changes if isinstance(change, JobEnded))
        while news:
            ended = news.popleft()
            self.ended[ended.job] = ended.state
            del self.jobs[ended.job]
            self.unmet.pop(ended.job, None)
            self.due.pop(ended.job, None)
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
    ) -> None:
        self.made += 1
        after: list[str] = []
        if depends and self.jobs:
            after = data.draw(st.lists(st.sampled_from(sorted(self.jobs)), max_size=2))
        job = make_job(
            f"j{self.made}",
            *claims,
            kind=kind,
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
        if self.unmet.get(job.id):
            assert (waiting.kind, set(waiting.holders)) == (
                "dependency",
                self.unmet[job.id],
            )
        elif not self.ledger.enabled:
            assert waiting.kind == "disabled"
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
    max_examples=150, stateful_step_count=50
)


class Reserving(RuleBasedStateMachine):
    """Jobs starve here; what they claim is kept from all that come after them."""

    overtake_after = 100.0

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.ledger = Ledger(
            "repo", workers=WORKERS, overtake_after=self.overtake_after
        )
        self.made = 0

    @rule(
        claims=st.sampled_from(CLAIMS),
        kind=st.sampled_from(KINDS),
        priority=st.integers(0, 4),
    )
    def add(self, claims: tuple[str, ...], kind: Kind, priority: int) -> None:
        self.made += 1
        job = make_job(
            f"j{self.made}", *claims, kind=kind, priority=priority, queued_at=self.now
        )
        self.ledger.add(job, (), self.now)

    @rule(seconds=st.sampled_from([1.0, 40.0, 100.0, 1800.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        waiting = [n for n in self.ledger.jobs if n not in self.ledger.leases]
        if waiting:
            self.ledger.cancel(data.draw(st.sampled_from(waiting)), self.now)

    @rule(tokens=st.sampled_from(TOKENS))
    def dispatch(self, tokens: tuple[str, ...]) -> None:
        self.ledger.offers(self.now)
        held = [claim for claims in self.ledger.leases.values() for claim in claims]
        ready = [job for job in self.ledger.jobs.values() if job.state not in RESERVED]
        able = [job for job in ready if first_conflict(job.claims, held) is None]
        # A job behind another that could have its tokens waits for that one first.
        starving = [
            job
            for job in ready
            if job not in able
            and self.now - job.queued_at >= self.overtake_after
            and not any(
                first.tokens == job.tokens
                and place(first, self.now) < place(job, self.now)
                for first in able
            )
        ]
        _, job = self.ledger.dispatch(tokens, self.now)
        if job is not None:
            for first in starving:
                if place(first, self.now) < place(job, self.now):
                    assert first_conflict(job.claims, first.claims) is None

    @rule()
    def make_a_pass(self) -> None:
        self.ledger.announce(self.now)

    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        if self.ledger.leases:
            name = data.draw(st.sampled_from(sorted(self.ledger.leases)))
            self.ledger.finish(name, 1, SUCCESS, None, self.now)

    @invariant()
    def every_waiting_job_can_be_explained(self) -> None:
        for name, job in self.ledger.jobs.items():
            if job.state not in RESERVED:
                waiting = self.ledger.waiting(name, self.now)
                assert set(waiting.holders) <= self.ledger.jobs.keys()
                assert name not in waiting.holders

    def teardown(self) -> None:
        """Nothing is reserved for ever: everything runs in the end."""
        self.ledger.announce(self.now)
        for _ in range(2 * self.made + 2):
            for offer in self.ledger.offers(self.now):
                self.ledger.dispatch(offer.tokens, self.now)
            for name in list(self.ledger.leases):
                self.ledger.finish(name, 1, SUCCESS, None, self.now)
        assert self.ledger.idle


test_reservations_hold_and_none_holds_for_ever = Reserving.TestCase
test_reservations_hold_and_none_holds_for_ever.settings = settings(
    max_examples=150, stateful_step_count=50
)
