"""Does an attempt still hold its job?"""

from __future__ import annotations

import pytest
from msgspec import structs

from forge_actors.domain.holding import Holder, holding
from forge_actors.domain.jobs import RESERVED, STATES, State

RUNNING = Holder("running", 2, 7)


@pytest.mark.parametrize("state", STATES)
def test_only_the_attempt_of_a_reserved_job_holds_it(state: State) -> None:
    found = holding("job", 2, 7, structs.replace(RUNNING, state=state))
    assert found.current is (state in RESERVED)
    assert (found.code, found.reason is None) == (
        (None, True) if found.current else ("FENCING_TOKEN_STALE", False)
    )
    assert (found.job, found.attempt, found.fence) == ("job", 2, 7)


@pytest.mark.parametrize(("attempt", "fence"), [(1, 7), (2, 6), (2, 8), (3, 7), (1, 6)])
def test_another_attempt_or_another_fence_is_stale(attempt: int, fence: int) -> None:
    found = holding("job", attempt, fence, RUNNING)
    assert (found.current, found.code) == (False, "FENCING_TOKEN_STALE")
    assert found.reason == (
        f"attempt {attempt} with the fence {fence} is not the last one of job job,"
        " which is attempt 2 with the fence 7"
    )


def test_a_job_that_nobody_knows_is_held_by_nobody() -> None:
    found = holding("job", 2, 7, None)
    assert (found.current, found.code) == (False, "FENCING_TOKEN_STALE")
    assert found.reason == "no job has the id job"


def test_one_that_is_being_ended_or_stands_still_does_not_hold_it() -> None:
    stopping = structs.replace(RUNNING, stopping=True)
    paused = structs.replace(RUNNING, paused=True)
    assert holding("job", 2, 7, stopping).code == "STOPPING"
    assert holding("job", 2, 7, paused).code == "PAUSED"
    both = structs.replace(stopping, paused=True)
    assert holding("job", 2, 7, both).reason == "job job is being stopped"
    # What is over is told first: nothing of it is to be stopped or resumed.
    over = structs.replace(both, state="failed")
    assert holding("job", 2, 7, over).code == "FENCING_TOKEN_STALE"
