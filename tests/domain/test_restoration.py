"""What becomes of a job of a backup, for everything that can be known of it."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.jobs import ACTIVE, RESERVED, STATES, TERMINAL, WAITING
from forge_actors.domain.restoration import Standing, Trace, doubt, moved_on, settle

if TYPE_CHECKING:
    from forge_actors.domain.jobs import Replay, State
    from forge_actors.domain.restoration import Verdict

WRITTEN = Trace(2, 9, "it is in receipts/x.jsonl")
PRINTED = Trace(2, None, "its output is in logs/job.2.stdout")
OLD = Trace(1, None, "its output is in logs/job.1.stdout")


def at(state: State, attempt: int = 1, replay: Replay = "never") -> Standing:
    return Standing(state, attempt, replay)


CASES: dict[str, tuple[Standing, Standing | None, Trace | None, bool, Verdict]] = {
    "nothing happened": (at("queued"), at("queued"), OLD, True, "keep"),
    "it ended": (at("queued"), at("succeeded", 2), PRINTED, True, "take"),
    "it was cancelled": (at("queued"), at("cancelled"), None, True, "take"),
    "it runs again": (at("queued"), at("running", 2), WRITTEN, True, "take"),
    "it waits again": (at("running"), at("queued"), OLD, True, "take"),
    "it still runs": (at("running"), at("running"), OLD, True, "keep"),
    "its receipt is left": (at("queued"), None, WRITTEN, False, "reserve"),
    "its output is left": (at("queued"), None, PRINTED, False, "ask"),
    "an older store knew more": (at("queued"), at("failed", 2), None, False, "take"),
    "nothing is known": (at("queued"), None, None, False, "hold"),
    "it may be repeated": (at("queued", 1, "safe"), None, None, False, "keep"),
    "it ran in the backup": (at("running"), None, OLD, False, "keep"),
    "it ran again": (at("running"), None, PRINTED, False, "ask"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_job_is_settled_by_what_is_known(
    case: tuple[Standing, Standing | None, Trace | None, bool, Verdict],
) -> None:
    saved, newer, trace, current, verdict = case
    assert settle(saved, newer, trace, current=current) == verdict


def test_no_job_that_may_have_run_waits_as_if_it_had_not() -> None:
    """Whatever the stores say, an attempt that left something is never begun again by
    itself; and what has ended in either store stays ended."""
    traces = (None, OLD, WRITTEN, PRINTED)
    stands = [at(state, attempt) for state in STATES for attempt in (1, 2)]
    for saved, newer, trace, current in product(
        stands, (None, *stands), traces, (True, False)
    ):
        verdict = settle(saved, newer, trace, current=current)
        after = newer if verdict == "take" and newer is not None else saved
        if saved.state in TERMINAL:
            assert verdict == "keep"
            continue
        if newer is not None and newer.state in TERMINAL:
            assert verdict == "take"
        free = verdict in ("keep", "take") and after.state in WAITING
        if free:
            assert trace is None or trace.attempt <= after.attempt
            assert current or verdict == "take"
            assert newer is None or newer.attempt <= after.attempt


def test_a_reservation_that_ended_is_a_move_and_the_same_state_is_none() -> None:
    for before, after in product(ACTIVE, ACTIVE):
        expected = (before in RESERVED) != (after in RESERVED)
        assert moved_on(at(before), at(after)) == expected
        assert moved_on(at(before), at(after, 2))


def test_the_doubt_names_the_attempt_and_the_evidence() -> None:
    error = doubt(PRINTED)
    assert error.code == "OPERATION_OUTCOME_AMBIGUOUS"
    assert "attempt 2" in error.message
    assert "logs/job.2.stdout" in error.message
