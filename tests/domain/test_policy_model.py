"""The ledger against the model, under policies that come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from forge_actors.domain.policies import Policy
from tests.domain.test_ledger_model import Model

if TYPE_CHECKING:
    from forge_actors.domain.jobs import Job
    from forge_actors.domain.waiting import WaitingKind

POLICIES = (None, Policy("exclusive", "w1"), Policy("exclusive", "w2"))
HALTING = Policy("maintenance")


class Ruled(Model):
    """What the model says of jobs that are of works."""

    works = (None, "w1", "w2")

    def __init__(self) -> None:
        super().__init__()
        self.policy: Policy | None = None

    def ready(self) -> list[Job]:
        policy = self.policy
        jobs = super().ready()
        return [job for job in jobs if policy is None or not policy.keeps_out(job.work)]

    def is_paused(self, job: Job, *, running: bool = False) -> bool:
        halted = self.policy is not None and self.policy.halts and not running
        return halted or super().is_paused(job, running=running)

    def kept_out(self, job: Job) -> WaitingKind | None:
        policy = self.policy
        if policy is None or super().is_paused(job):
            return None
        return "policy" if policy.halts or policy.keeps_out(job.work) else None

    @rule(policy=st.sampled_from([*POLICIES, HALTING]))
    def set_policy(self, policy: Policy | None) -> None:
        assert self.ledger.told_of_policy(policy, self.now) == []
        self.policy = policy
        self.set_clocks()


test_a_ledger_goes_by_policies_as_the_model_says = Ruled.TestCase
test_a_ledger_goes_by_policies_as_the_model_says.settings = settings(
    max_examples=80, stateful_step_count=40
)
