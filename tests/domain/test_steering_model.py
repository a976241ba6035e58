"""The ledger's model, and people who hold, pause, resume and edit all the time."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from msgspec import UNSET

from forge_actors.domain.changes import JobHeld, Noted
from forge_actors.domain.edits import Edit
from forge_actors.domain.jobs import RESERVED
from forge_actors.domain.scopes import Pause
from tests.domain.ledger_kit import CLAIMS
from tests.domain.making import make_job
from tests.domain.test_ledger_model import Model
from tests.examples import examples

if TYPE_CHECKING:
    from forge_actors.domain.steering import Steering


class Steered(Model):
    """What a repository's actor is told by people, between everything else."""

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), how=st.sampled_from(["hold", "unhold", "pause", "resume"]))
    def steer(self, data: st.DataObject, how: Steering) -> None:
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

    @precondition(lambda self: self.jobs)
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
        on=st.sampled_from([False, False, True]),
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

    @invariant()
    def what_stands_still_is_what_a_pause_or_a_person_suspended(self) -> None:
        assert self.ledger.suspended == {
            name
            for name, job in self.jobs.items()
            if job.state in RESERVED
            and (job.held_at is not None or self.is_paused(job, running=True))
        }


test_a_ledger_can_be_steered_at_any_moment = Steered.TestCase
test_a_ledger_can_be_steered_at_any_moment.settings = settings(
    max_examples=examples(150), stateful_step_count=50
)
