"""The one decision about an attempt that is over, as a table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.jobs import (
    MAX_MESSAGE,
    MOVES,
    REPLAYS,
    JobError,
    Replay,
    State,
)
from forge_actors.domain.launch import Ending, Receipt
from forge_actors.domain.recovery import StopReason, decide, last_lines
from tests.domain.making import FAILURE, SUCCESS, make_job, make_receipt

SIGNALLED = make_receipt(signal="SIGKILL")
STARVED = make_receipt(signal="SIGKILL", out_of_memory=True)
WALL = make_receipt("wall", signal="SIGTERM")
IDLE = make_receipt("idle", signal="SIGTERM")
SPAWN = make_receipt("spawn", began=False, error="no such program")
LOST = make_receipt("lost")
STOPPED = make_receipt("stop", signal="SIGTERM")
STOPPED_UNBEGUN = make_receipt("stop", began=False)
OWNER = make_receipt("owner", signal="SIGKILL")
NOTHING = None

AGAIN: State = "queued"
ATTENTION: State = "human_attention_required"

#: receipt, state before, replay, attempt, stopped -> state after, error code.
#: Three attempts when interrupted, two when it exits by itself.
TABLE: list[
    tuple[Receipt | None, State, Replay, int, StopReason | None, State, str | None]
] = [
    # It ended well, whatever else was wanted of it.
    (SUCCESS, "running", "never", 1, None, "succeeded", None),
    (SUCCESS, "running", "never", 1, "cancelled", "succeeded", None),
    (SUCCESS, "running", "safe", 3, "shutdown", "succeeded", None),
    (SUCCESS, "dispatched", "never", 1, None, "succeeded", None),
    # Its own exit is repeated under `always` only, and up to its own limit.
    (FAILURE, "running", "never", 1, None, "failed", "EXIT_NONZERO"),
    (FAILURE, "running", "safe", 1, None, "failed", "EXIT_NONZERO"),
    (FAILURE, "running", "always", 1, None, AGAIN, "EXIT_NONZERO"),
    (FAILURE, "running", "always", 2, None, "failed", "EXIT_NONZERO"),
    (FAILURE, "running", "always", 1, "shutdown", AGAIN, "EXIT_NONZERO"),
    # A signal that was not ours is an interruption.
    (SIGNALLED, "running", "never", 1, None, ATTENTION, "INTERRUPTED"),
    (SIGNALLED, "running", "safe", 1, None, AGAIN, "SIGNALLED"),
    (SIGNALLED, "running", "safe", 3, None, "failed", "SIGNALLED"),
    (SIGNALLED, "running", "always", 2, None, AGAIN, "SIGNALLED"),
    # Of its own limit the system ended it, and would again.
    (STARVED, "running", "never", 1, None, "failed", "OUT_OF_MEMORY"),
    (STARVED, "running", "always", 1, None, "failed", "OUT_OF_MEMORY"),
    (STARVED, "running", "safe", 1, "cancelled", "cancelled", "CANCELLED"),
    # A person's cancel stands.
    (FAILURE, "running", "always", 1, "cancelled", "cancelled", "CANCELLED"),
    (SIGNALLED, "running", "safe", 1, "cancelled", "cancelled", "CANCELLED"),
    (STOPPED, "running", "safe", 1, "cancelled", "cancelled", "CANCELLED"),
    (STOPPED_UNBEGUN, "dispatched", "safe", 1, "cancelled", "cancelled", "CANCELLED"),
    (LOST, "running", "safe", 1, "cancelled", "cancelled", "CANCELLED"),
    (WALL, "running", "safe", 1, "cancelled", "cancelled", "CANCELLED"),
    (SPAWN, "dispatched", "safe", 1, "cancelled", "cancelled", "CANCELLED"),
    # A stop of the service, or its end.
    (STOPPED, "running", "never", 1, "shutdown", ATTENTION, "INTERRUPTED"),
    (STOPPED, "running", "safe", 1, "shutdown", AGAIN, "INTERRUPTED"),
    (STOPPED, "running", "safe", 2, "shutdown", AGAIN, "INTERRUPTED"),
    (STOPPED, "running", "safe", 3, "shutdown", "failed", "INTERRUPTED"),
    (STOPPED, "running", "always", 3, None, "failed", "INTERRUPTED"),
    (STOPPED_UNBEGUN, "dispatched", "never", 1, "shutdown", AGAIN, "INTERRUPTED"),
    (STOPPED_UNBEGUN, "dispatched", "safe", 3, "shutdown", AGAIN, "INTERRUPTED"),
    (OWNER, "running", "never", 1, None, ATTENTION, "INTERRUPTED"),
    (OWNER, "running", "safe", 1, None, AGAIN, "INTERRUPTED"),
    (OWNER, "running", "always", 3, None, "failed", "INTERRUPTED"),
    # Its time ran out: never again.
    (WALL, "running", "never", 1, None, "timed_out", "EXECUTION_TIMEOUT"),
    (WALL, "running", "always", 1, None, "timed_out", "EXECUTION_TIMEOUT"),
    (IDLE, "running", "never", 1, None, "timed_out", "IDLE_TIMEOUT"),
    (IDLE, "running", "safe", 1, "shutdown", "timed_out", "IDLE_TIMEOUT"),
    # It never began: starting it again would fail again.
    (SPAWN, "dispatched", "never", 1, None, "failed", "WORKER_START_FAILED"),
    (SPAWN, "dispatched", "always", 1, None, "failed", "WORKER_START_FAILED"),
    # The launcher, or the runtime, is gone and nobody saw the end.
    (LOST, "running", "never", 1, None, ATTENTION, "WORKER_LOST"),
    (LOST, "running", "safe", 1, None, AGAIN, "WORKER_LOST"),
    (LOST, "running", "safe", 3, None, "failed", "WORKER_LOST"),
    (NOTHING, "dispatched", "never", 1, None, AGAIN, "INTERRUPTED"),
    (NOTHING, "dispatched", "safe", 3, None, AGAIN, "INTERRUPTED"),
    (NOTHING, "running", "never", 1, None, ATTENTION, "WORKER_LOST"),
    (NOTHING, "running", "safe", 2, None, AGAIN, "WORKER_LOST"),
    (NOTHING, "running", "always", 3, None, "failed", "WORKER_LOST"),
]


@pytest.mark.parametrize(
    ("receipt", "before", "replay", "attempt", "stopped", "after", "code"), TABLE
)
def test_an_ending_has_one_outcome(
    receipt: Receipt | None,
    before: State,
    replay: Replay,
    attempt: int,
    stopped: StopReason | None,
    after: State,
    code: str | None,
) -> None:
    job = make_job(
        "a",
        state=before,
        replay=replay,
        attempt=attempt,
        max_attempts=3,
        exit_attempts=2,
    )
    outcome = decide(job, receipt, stopped)
    assert outcome.state == after
    assert (outcome.error.code if outcome.error else None) == code
    assert outcome.again is (after == "queued")


@pytest.mark.parametrize("receipt", [STOPPED, OWNER, LOST, SIGNALLED, NOTHING])
def test_a_person_reads_why_an_unsafe_job_was_not_repeated(
    receipt: Receipt | None,
) -> None:
    error = decide(make_job("a", state="running", attempt=1), receipt).error
    assert error is not None
    assert "not marked as safe to repeat" in error.message


def test_the_message_of_a_job_that_never_began_is_the_launchers() -> None:
    error = decide(make_job("a", state="dispatched", attempt=1), SPAWN).error
    assert error is not None
    assert error.message == "no such program"


def message(receipt: Receipt, replay: Replay = "never") -> str:
    job = make_job("a", state="running", replay=replay, attempt=1, exit_attempts=2)
    error = decide(job, receipt).error
    assert error is not None
    return error.message


def test_an_error_tells_the_last_lines_of_what_the_job_printed_as_errors() -> None:
    told = make_receipt(exit_code=7, stderr="first\n\n boom \x1b[31mred\x1b[0m  \n\n")
    assert message(told) == "exit status 7: first\n boom red"
    assert message(told, "always") == "attempt 1 exited 7: first\n boom red"
    many = make_receipt(exit_code=7, stderr="".join(f"line {n}\n" for n in range(99)))
    assert message(many) == "exit status 7: " + "\n".join(
        f"line {n}" for n in range(94, 99)
    )
    killed = make_receipt(signal="SIGSEGV", stderr="bad address")
    assert message(killed, "safe").endswith("attempt 1 of 3: bad address")
    assert message(make_receipt("wall", stderr="slow")).endswith("limit: slow")
    assert message(make_receipt("idle", stderr="stuck")).endswith("long: stuck")
    # We ended it, and what it said to that is not why.
    assert "bye" not in message(make_receipt("stop", signal="SIGTERM", stderr="bye"))


def test_what_an_error_tells_is_redacted_and_bounded() -> None:
    token = "sk-" + "a1" * 20
    text = message(make_receipt(exit_code=1, stderr=f"denied: {token}\n"))
    assert text == "exit status 1: denied: [redacted]"
    key = "QUJDREVGR0g=\n-----END RSA PRIVATE KEY-----\nafter\n"
    assert last_lines(key) == "[redacted]\nafter"
    long = last_lines(f"{token} /home/al/secret " + "x " * 16_000)
    assert len(long) <= 1001
    assert long.startswith("… x")
    assert len(JobError("X", "y" * 10_000).message) == MAX_MESSAGE


ENDINGS: list[Ending] = ["exit", "stop", "wall", "idle", "owner", "spawn", "lost"]
RECEIPTS = st.none() | st.builds(
    make_receipt,
    st.sampled_from(ENDINGS),
    exit_code=st.none() | st.integers(0, 255),
    signal=st.none() | st.sampled_from(["SIGTERM", "SIGKILL"]),
    began=st.booleans(),
)


@given(
    RECEIPTS,
    st.sampled_from(["dispatched", "running"]),
    st.sampled_from(REPLAYS),
    st.integers(1, 5),
    st.sampled_from([None, "cancelled", "shutdown"]),
)
def test_every_outcome_is_a_legal_move_and_every_other_than_success_has_a_reason(
    receipt: Receipt | None,
    before: State,
    replay: Replay,
    attempt: int,
    stopped: StopReason | None,
) -> None:
    job = make_job("a", state=before, replay=replay, attempt=attempt)
    outcome = decide(job, receipt, stopped)
    assert outcome.state in MOVES[before]
    assert (outcome.error is None) is (outcome.state == "succeeded")
    if outcome.again and replay == "never":
        # Never a second time once it began.
        assert before == "dispatched" if receipt is None else not receipt.started_at


@given(RECEIPTS, st.sampled_from(REPLAYS), st.integers(3, 9))
def test_a_job_whose_attempts_are_used_up_is_not_repeated_once_it_began(
    receipt: Receipt | None, replay: Replay, attempt: int
) -> None:
    job = make_job("a", state="running", replay=replay, attempt=attempt)
    if receipt is None or receipt.started_at is not None:
        assert not decide(job, receipt).again
