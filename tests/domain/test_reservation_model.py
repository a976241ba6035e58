"""Reservations of the ledger under random moves: they hold, and none holds for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from forge_actors.domain.claims import first_conflict
from forge_actors.domain.jobs import RESERVED, Kind
from forge_actors.domain.ledger import Ledger
from forge_actors.domain.scopes import Pause
from tests.domain.ledger_kit import CLAIMS, KINDS, TOKENS, WORKERS, place
from tests.domain.making import SUCCESS, end_attempt, make_job
from tests.examples import examples

if TYPE_CHECKING:
    from forge_actors.domain.steering import Steering


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
        self.paused = False

    @rule(
        claims=st.sampled_from(CLAIMS),
        kind=st.sampled_from(KINDS),
        priority=st.integers(0, 4),
        provider=st.sampled_from([None, "local"]),
    )
    def add(
        self, claims: tuple[str, ...], kind: Kind, priority: int, provider: str | None
    ) -> None:
        self.made += 1
        job = make_job(
            f"j{self.made}",
            *claims,
            kind=kind,
            priority=priority,
            provider=provider,
            queued_at=self.now,
        )
        self.ledger.add(job, (), self.now)

    @rule(seconds=st.sampled_from([1.0, 40.0, 100.0, 1800.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(paused=st.booleans())
    def pause_the_provider(self, paused: bool) -> None:
        self.paused = paused
        pauses = [Pause("provider:local", self.now)] if paused else []
        self.ledger.told_of(pauses, self.now)

    @rule(data=st.data(), how=st.sampled_from(["hold", "unhold"]))
    def steer(self, data: st.DataObject, how: Steering) -> None:
        waiting = [n for n in self.ledger.jobs if n not in self.ledger.leases]
        if waiting:
            name = data.draw(st.sampled_from(waiting))
            assert self.ledger.steer(name, how, self.now)[1] is None

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        waiting = [n for n in self.ledger.jobs if n not in self.ledger.leases]
        if waiting:
            self.ledger.cancel(data.draw(st.sampled_from(waiting)), self.now)

    @rule(data=st.data())
    def dispatch(self, data: st.DataObject) -> None:
        offered = [offer.tokens for offer in self.ledger.offers(self.now)]
        tokens = data.draw(st.sampled_from(offered or TOKENS))
        held = [claim for claims in self.ledger.leases.values() for claim in claims]
        ready = [
            job
            for job in self.ledger.jobs.values()
            if job.state not in RESERVED
            and job.held_at is None
            and not (self.paused and "provider:local" in job.tokens)
        ]
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
            end_attempt(self.ledger, name, 1, SUCCESS, None, self.now)

    @invariant()
    def every_waiting_job_can_be_explained(self) -> None:
        for name, job in self.ledger.jobs.items():
            if job.state not in RESERVED:
                waiting = self.ledger.waiting(name, self.now)
                assert set(waiting.holders) <= self.ledger.jobs.keys()
                assert name not in waiting.holders

    def teardown(self) -> None:
        """Nothing is reserved for ever: everything runs in the end."""
        self.ledger.told_of([], self.now)
        for name in self.ledger.jobs:
            self.ledger.steer(name, "resume", self.now)
        self.ledger.announce(self.now)
        for _ in range(2 * self.made + 2):
            for offer in self.ledger.offers(self.now):
                self.ledger.dispatch(offer.tokens, self.now)
            for name in list(self.ledger.leases):
                end_attempt(self.ledger, name, 1, SUCCESS, None, self.now)
        assert self.ledger.idle


test_reservations_hold_and_none_holds_for_ever = Reserving.TestCase
test_reservations_hold_and_none_holds_for_ever.settings = settings(
    max_examples=examples(150), stateful_step_count=50
)
