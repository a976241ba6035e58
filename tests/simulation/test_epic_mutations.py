"""The simulation of EPIC runs finds bugs: each that is put in within 200 seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors.testing.epic.simulation import run
from tests.simulation.mutations_of_epics import OF_EPICS

if TYPE_CHECKING:
    from forge_actors.testing.epic.simulation import Result
    from tests.simulation.mutations_of_epics import Mutation

SEEDS = range(200)
#: Where those were found last that few seeds find: tried first, and then all others.
FIRST = {
    "a_drain_interrupts_workers": 19,
    "the_grace_is_over_at_once": 28,
    "whatever_is_closed_satisfies": 21,
    "who_is_skipped_keeps_its_slot": 80,
}


@pytest.mark.parametrize("mutation", OF_EPICS, ids=lambda each: each.__name__)
def test_a_deliberate_bug_is_found(mutation: Mutation) -> None:
    found: Result | None = None
    with pytest.MonkeyPatch.context() as patch:
        mutation(patch)
        for seed in (FIRST.get(mutation.__name__, SEEDS[0]), *SEEDS):
            found = run(seed)
            if found.violation is not None:
                break
    assert found is not None
    assert found.violation is not None
    # Not because a mutation does not fit any more what it is put into.
    assert found.violation.rule != "nothing fails", found.violation
    assert run(found.plan).violation is None, "without the bug everything holds"
