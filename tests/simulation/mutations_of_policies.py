"""Deliberate bugs of policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import structs

from forge_actors.domain.job_queue import JobQueue
from forge_actors.domain.policies import Policy
from forge_actors.domain.steering import Steerable
from forge_actors.testing.simulation.rows import SimulatedRows

if TYPE_CHECKING:
    import pytest

    from tests.simulation.mutations import Mutation


def a_ledger_does_not_hear_of_a_policy(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Steerable, "told_of_policy", lambda *_: [])


def jobs_of_other_works_are_candidates(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(JobQueue, "_keeps_out", lambda *_: False)


def a_policy_is_forgotten_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    real = SimulatedRows.copy

    def copy(self: Any) -> Any:
        made = real(self)
        self.policy = structs.replace(Policy(), revision=self.policy.revision)
        return made

    patch.setattr(SimulatedRows, "copy", copy)


OF_POLICIES: tuple[Mutation, ...] = (
    a_ledger_does_not_hear_of_a_policy,
    jobs_of_other_works_are_candidates,
    a_policy_is_forgotten_at_a_restart,
)
