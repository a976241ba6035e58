"""The one decision about an attempt that is over: a table, and what always holds."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from forge_actors.domain.backoff import Backoff
from forge_actors.domain.jobs import (
    KINDS,
    MAX_MESSAGE,
    MOVES,
    REPLAYS,
    Job,
    JobError,
    Kind,
    Replay,
    State,
)
from forge_actors.domain.launch import Receipt
from forge_actors.domain.recovery import (
    Evidence,
    Outcome,
    StopReason,
    decide,
    has_begun,
    last_lines,
)
from tests.domain.making import IDENTITY, make_job, make_receipt

BACKOFF = Backoff(first=2.0, longest=60.0)
#: Attempts in all when it is interrupted, and when it exits by itself.
MAX_ATTEMPTS, EXIT_ATTEMPTS = 3, 2

#: Every way in which an attempt can end, by a name; `none`: there is no receipt.
RECEIPTS: dict[str, Receipt | None] = {
    "none": None,
    "good": make_receipt(exit_code=0),
    "bad": make_receipt(exit_code=7),
    "signal": make_receipt(signal="SIGKILL"),
    "starved": make_receipt(signal="SIGKILL", out_of_memory=True),
    "unknown": make_receipt(),
    "wall": make_receipt("wall", signal="SIGTERM"),
    "idle": make_receipt("idle", signal="SIGTERM"),
    "spawn": make_receipt("spawn", began=False, error="no such program"),
    "lost": make_receipt("lost"),
    "lost early": make_receipt("lost", began=False),
    "stop": make_receipt("stop", signal="SIGTERM"),
    "stop early": make_receipt("stop", began=False),
    "owner": make_receipt("owner", signal="SIGKILL"),
    "owner early": make_receipt("owner", began=False),
    "withdrawn": make_receipt("withdrawn", began=False),
    "cancel": make_receipt("cancel", signal="SIGTERM"),
    "cancel early": make_receipt("cancel", began=False),
    "remains": structs.replace(make_receipt("lost"), remaining=(IDENTITY,)),
}
STOPPED: list[StopReason | None] = [None, "cancelled", "shutdown", "detached"]
BEFORE: list[State] = ["dispatched", "running"]


class Case(NamedTuple):
    receipt: str
    before: State
    replay: Replay
    attempt: int
    stopped: StopReason | None
    kind: Kind
    child: bool
    overdue: bool


CASES = [
    Case(*values)
    for values in product(
        RECEIPTS,
        BEFORE,
        REPLAYS,
        (1, 2, 3),
        STOPPED,
        ("repository-command", "dispatch-task"),
        (False, True),
        (False, True),
    )
]

INTERRUPTIONS = {"none", "signal", "unknown", "lost", "lost early", "stop", "owner"}
INTERRUPTIONS |= {"stop early", "owner early", "withdrawn"}


class Row(NamedTuple):
    """A rule: for cases with one of these endings, which the words narrow down."""

    endings: set[str]
    words: str
    after: str
    code: str | None


#: The first row that fits a case says what becomes of it. Words: `dispatched`,
#: `running`; `never`, `safe`, `always`; `left`, `used`: attempts for an interruption;
#: `exits`: attempts for an own exit are left; `cancelled`; `accepted`; `overdue`.
TABLE = [
    Row({"good"}, "", "succeeded", None),
    Row({"remains"}, "", "orphaned", "WORKER_TERMINATION_INCOMPLETE"),
    Row(set(RECEIPTS), "cancelled", "cancelled", "CANCELLED"),
    Row({"cancel", "cancel early"}, "", "cancelled", "CANCELLED"),
    # What never began is begun again.
    Row({"none"}, "dispatched", "queued", "INTERRUPTED"),
    Row({"stop early", "owner early"}, "dispatched", "queued", "INTERRUPTED"),
    Row({"withdrawn"}, "dispatched", "queued", "INTERRUPTED"),
    # Its time ran out.
    Row({"wall"}, "", "timed_out", "EXECUTION_TIMEOUT"),
    Row({"idle"}, "", "timed_out", "IDLE_TIMEOUT"),
    # Its own doing.
    Row({"spawn"}, "always exits", "again", "WORKER_START_FAILED"),
    Row({"spawn"}, "", "failed", "WORKER_START_FAILED"),
    Row({"bad"}, "always exits", "again", "EXIT_NONZERO"),
    Row({"bad"}, "", "failed", "EXIT_NONZERO"),
    # Of its own limit the system ended it, and would again.
    Row({"starved"}, "", "failed", "OUT_OF_MEMORY"),
    # It only handed its work on.
    Row(INTERRUPTIONS, "accepted", "succeeded", None),
    # Nobody saw its end, and its time was over by then.
    Row({"none", "lost"}, "overdue", "timed_out", "EXECUTION_TIMEOUT"),
    Row({"lost early"}, "running overdue", "timed_out", "EXECUTION_TIMEOUT"),
    # It was interrupted, and may not be repeated.
    Row({"lost early"}, "dispatched never", "attention", "OPERATION_OUTCOME_AMBIGUOUS"),
    Row({"none", "lost", "lost early"}, "never", "attention", "WORKER_LOST"),
    Row({"unknown"}, "never", "attention", "WORKER_LOST"),
    Row(INTERRUPTIONS, "never", "attention", "INTERRUPTED"),
    # It was interrupted, and may be repeated.
    Row({"none", "lost", "lost early", "unknown"}, "left", "again", "WORKER_LOST"),
    Row({"none", "lost", "lost early", "unknown"}, "", "failed", "WORKER_LOST"),
    Row({"signal"}, "left", "again", "SIGNALLED"),
    Row({"signal"}, "", "failed", "SIGNALLED"),
    Row(INTERRUPTIONS, "left", "again", "INTERRUPTED"),
    Row(INTERRUPTIONS, "", "failed", "INTERRUPTED"),
]


def job_of(case: Case) -> Job:
    return make_job(
        "a",
        state=case.before,
        replay=case.replay,
        attempt=case.attempt,
        kind=case.kind,
        max_attempts=MAX_ATTEMPTS,
        exit_attempts=EXIT_ATTEMPTS,
    )


def outcome_of(case: Case) -> Outcome:
    known = Evidence(
        RECEIPTS[case.receipt],
        case.stopped,
        "child" if case.child else None,
        case.overdue,
        now=30.0,
    )
    return decide(job_of(case), known, BACKOFF)


def words_of(case: Case) -> set[str]:
    words = {case.before, case.replay}
    words.add("left" if case.attempt < MAX_ATTEMPTS else "used")
    facts = {
        "exits": case.attempt < EXIT_ATTEMPTS,
        "cancelled": case.stopped == "cancelled",
        "accepted": case.child and case.kind == "dispatch-task",
        "overdue": case.overdue,
    }
    return words | {word for word, holds in facts.items() if holds}


def row_of(case: Case) -> Row:
    words = words_of(case)
    return next(
        row
        for row in TABLE
        if case.receipt in row.endings and words >= set(row.words.split())
    )


@pytest.mark.parametrize("ending", RECEIPTS)
def test_every_combination_has_the_outcome_of_the_table(ending: str) -> None:
    for case in (case for case in CASES if case.receipt == ending):
        row, outcome = row_of(case), outcome_of(case)
        after = {
            "again": "waiting_for_retry",
            "attention": "human_attention_required",
        }.get(row.after, row.after)
        code = None if outcome.error is None else outcome.error.code
        assert (outcome.state, code) == (after, row.code), case


def test_every_row_of_the_table_is_needed() -> None:
    used = {TABLE.index(row_of(case)) for case in CASES}
    assert used == set(range(len(TABLE)))


def test_every_outcome_is_a_legal_move_and_has_a_reason() -> None:
    for case in CASES:
        outcome = outcome_of(case)
        assert outcome.state in MOVES[case.before], case
        assert (outcome.error is None) is (outcome.state == "succeeded"), case
        assert (outcome.accepted is None) or outcome.state == "succeeded", case
        assert outcome.again is (outcome.state in ("queued", "waiting_for_retry"))
        assert (outcome.delay > 0) is (outcome.state == "waiting_for_retry"), case


def test_only_one_that_was_withdrawn_is_not_counted() -> None:
    for case in CASES:
        uncounted = outcome_of(case).uncounted
        withdrawn = case.receipt == "withdrawn" and outcome_of(case).state == "queued"
        assert uncounted is withdrawn, case


def test_only_what_never_began_comes_back_at_once() -> None:
    for case in CASES:
        if outcome_of(case).state == "queued":
            assert not has_begun(job_of(case), RECEIPTS[case.receipt]), case


@given(
    st.none()
    | st.builds(
        make_receipt,
        st.sampled_from(
            ["exit", "stop", "cancel", "wall", "idle", "owner", "spawn", "lost"]
        ),
        exit_code=st.none() | st.integers(0, 255),
        signal=st.none() | st.sampled_from(["SIGTERM", "SIGKILL"]),
        began=st.booleans(),
    ),
    st.sampled_from(BEFORE),
    st.sampled_from(REPLAYS),
    st.sampled_from(KINDS),
    st.integers(1, 200),
    st.sampled_from(STOPPED),
    st.none() | st.just("child"),
    st.booleans(),
)
def test_whatever_is_known_there_is_one_outcome_and_nothing_runs_twice(
    receipt: Receipt | None,
    before: State,
    replay: Replay,
    kind: Kind,
    attempt: int,
    stopped: StopReason | None,
    child: str | None,
    overdue: bool,
) -> None:
    job = make_job("a", state=before, replay=replay, attempt=attempt, kind=kind)
    outcome = decide(job, Evidence(receipt, stopped, child, overdue), BACKOFF)
    assert outcome.state in MOVES[before]
    if receipt is not None and (receipt.ending, receipt.exit_code) == ("exit", 0):
        assert outcome.state == "succeeded"
    if has_begun(job, receipt):
        assert not (outcome.again and replay == "never")
        assert not (outcome.again and attempt >= job.max_attempts)
    assert outcome.delay <= BACKOFF.longest


@pytest.mark.parametrize("ending", ["stop", "owner", "lost", "lost early", "signal"])
def test_a_person_reads_why_an_unsafe_job_was_not_repeated(ending: str) -> None:
    job = make_job("a", state="running", attempt=2)
    receipt = RECEIPTS[ending]
    assert receipt is not None
    known = Evidence(structs.replace(receipt, identity=IDENTITY), now=30.0)
    error = decide(structs.replace(job, started_at=10.0), known, BACKOFF).error
    assert error is not None
    assert "not marked as safe to repeat" in error.message
    assert "(attempt 2, process 4242, begun 10 s before)" in error.message


def test_what_could_not_be_proven_gone_is_named() -> None:
    many = tuple(structs.replace(IDENTITY, pid=pid) for pid in range(100, 112))
    receipt = structs.replace(make_receipt("lost"), remaining=many)
    error = decide(make_job("a", attempt=1), Evidence(receipt), BACKOFF).error
    assert error is not None
    assert (
        "processes 100, 101, 102, 103, 104, 105, 106, 107 and 4 more" in error.message
    )


def test_a_start_that_failed_says_why_and_that_it_was_an_attempt() -> None:
    job = make_job("a", state="dispatched", attempt=1)
    error = decide(job, Evidence(RECEIPTS["spawn"]), BACKOFF).error
    assert error is not None
    assert error.message == "no such program; it used attempt 1"


def test_one_that_handed_its_work_on_says_to_whom() -> None:
    job = make_job("a", state="running", attempt=1, kind="dispatch-task")
    outcome = decide(job, Evidence(RECEIPTS["lost"], child="b"), BACKOFF)
    assert (outcome.state, outcome.accepted) == ("succeeded", "b")


def message(receipt: Receipt, replay: Replay = "never") -> str:
    job = make_job("a", state="running", replay=replay, attempt=1, exit_attempts=2)
    error = decide(job, Evidence(receipt), BACKOFF).error
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


def test_a_set_up_that_failed_is_told_once() -> None:
    said = "npm: no network\nforge-actors: set-up exited with 3: npm ci\n"
    why = "its set-up command exited with 3: npm ci"
    receipt = structs.replace(
        make_receipt(exit_code=1), setup_error=why, stderr_tail=said
    )
    assert message(receipt) == f"{why}: npm: no network"


def test_what_an_error_tells_is_redacted_and_bounded() -> None:
    token = "sk-" + "a1" * 20
    text = message(make_receipt(exit_code=1, stderr=f"denied: {token}\n"))
    assert text == "exit status 1: denied: [redacted]"
    key = "QUJDREVGR0g=\n-----END RSA PRIVATE KEY-----\nafter\n"
    assert last_lines(key) == "[redacted]\nafter"
    long = last_lines(f"{token} /home/al/secret " + "x " * 8_000)
    assert len(long) <= 1001
    assert long.startswith("… x")
    assert len(JobError("X", "y" * 10_000).message) == MAX_MESSAGE
