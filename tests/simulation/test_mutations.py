"""The simulation finds bugs: each one that is put in is found within 200 seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors.testing.simulation import run
from tests.simulation.mutations import MUTATIONS

if TYPE_CHECKING:
    from tests.simulation.mutations import Mutation

SEEDS = range(200)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.__name__)
def test_a_deliberate_bug_is_found(mutation: Mutation) -> None:
    with pytest.MonkeyPatch.context() as patch:
        mutation(patch)
        found = next((seed for seed in SEEDS if run(seed).violation), None)
    assert found is not None
    assert run(found).violation is None, "without the bug everything holds"
