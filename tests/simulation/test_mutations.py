"""The simulation finds bugs: each one that is put in is found within 200 seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors.testing.simulation import run
from tests.simulation.mutations import MUTATIONS, REFUSED
from tests.simulation.mutations_of_policies import OF_POLICIES
from tests.simulation.mutations_of_rooms import OF_ROOMS
from tests.simulation.mutations_of_steps import OF_STEPS

if TYPE_CHECKING:
    from forge_actors.testing.simulation import Result
    from tests.simulation.mutations import Mutation

SEEDS = range(200)


@pytest.mark.parametrize(
    "mutation",
    [*MUTATIONS, *OF_STEPS, *OF_POLICIES, *OF_ROOMS],
    ids=lambda each: each.__name__,
)
def test_a_deliberate_bug_is_found(mutation: Mutation) -> None:
    found: Result | None = None
    with pytest.MonkeyPatch.context() as patch:
        mutation(patch)
        for seed in SEEDS:
            found = run(seed)
            if found.violation is not None:
                break
    assert found is not None
    assert found.violation is not None
    # Not because a mutation does not fit any more what it is put into.
    fails = found.violation.rule == "nothing fails"
    assert mutation in REFUSED or not fails, found.violation
    assert run(found.plan).violation is None, "without the bug everything holds"
