"""The ledger that isolates agent jobs, against the same model under random moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import settings

from forge_actors.domain.changes import JobDispatched, JobIsolated
from forge_actors.domain.claims import CHECKOUT_FAMILIES, Claim, conflict
from tests.domain.test_ledger_model import Model
from tests.examples import examples

if TYPE_CHECKING:
    from forge_actors.domain.changes import Change
    from forge_actors.domain.jobs import Job

SHARED = CHECKOUT_FAMILIES | {"repo-content"}


class IsolatingModel(Model):
    """Agent jobs that only a checkout keeps from starting do not wait for it."""

    isolates = True

    def __init__(self) -> None:
        super().__init__()
        #: What each job claimed when it was best, and who was in its way.
        self.before: tuple[Claim, ...] = ()
        self.in_the_way: set[str] = set()

    def conflicts(self, job: Job) -> list[tuple[str, Claim, Claim]]:
        return [
            (holder, mine, theirs)
            for holder, held in self.ledger.leases.items()
            for mine in job.claims
            for theirs in held
            if conflict(mine, theirs)
        ]

    def is_free(self, job: Job) -> bool:
        found = self.conflicts(job)
        return not found or (
            job.isolatable
            and all(
                claim.family in SHARED and claim.mode != "exclusive"
                for _, mine, theirs in found
                for claim in (mine, theirs)
            )
        )

    def best(self, tokens: tuple[str, ...]) -> Job | None:
        found = super().best(tokens)
        if found is not None:
            self.before = found.claims
            self.in_the_way = {holder for holder, _, _ in self.conflicts(found)}
        return found

    def judge(self, changes: list[Change], job: Job | None) -> None:
        if job is None:
            assert changes == []
            return
        kinds = [type(change) for change in changes]
        if not self.in_the_way:
            assert kinds == [JobDispatched]
            assert job.claims == self.before
            return
        assert kinds == [JobIsolated, JobDispatched]
        isolated = changes[0]
        assert isinstance(isolated, JobIsolated)
        assert set(isolated.event.data["blockers"]) == self.in_the_way  # type: ignore[call-overload]
        others = {claim for claim in self.before if claim.family not in SHARED}
        others |= {claim for claim in self.before if claim.mode == "exclusive"}
        mine = Claim("write", "worktree", job.id)
        assert set(job.claims) == set(isolated.claims) == others | {mine}
        assert not job.isolatable


test_a_ledger_isolates_as_the_model_says = IsolatingModel.TestCase
test_a_ledger_isolates_as_the_model_says.settings = settings(
    max_examples=examples(150), stateful_step_count=50
)
