"""What the end of a check says: passed, failed, or nothing at all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import forge_actors
from forge_actors.domain import agent_verdicts
from forge_actors.domain.jobs import STATES, TERMINAL
from forge_actors.domain.validation import FAILED, PASSED, VERDICTS, validate
from tests.domain.making import FAILURE, SUCCESS, make_receipt

if TYPE_CHECKING:
    from forge_actors.domain.jobs import State
    from forge_actors.domain.launch import Receipt

#: Every code that a job ends with, and what a failed check with it has found out:
#: `failed`, or nothing, and then whether another try may find out more.
CODES = {
    "ADMISSION_TIMEOUT": "again",
    "AGENT_FAILED": "failed",
    "BUDGET_SPENT": "nothing",
    "CANCELLED": "again",
    "DENIED": "failed",
    "DEPENDENCY_BLOCKED": "nothing",
    "EMPTY_RESULT": "failed",
    "EXECUTION_TIMEOUT": "again",
    "EXIT_NONZERO": "failed",
    "IDLE_TIMEOUT": "again",
    "INPUTS_MISSING": "again",
    "INTERRUPTED": "again",
    "OPERATION_OUTCOME_AMBIGUOUS": "again",
    "OUTPUT_LIMIT": "failed",
    "OUT_OF_MEMORY": "failed",
    "PROVIDER_AUTH": "nothing",
    "QUESTION": "again",
    "QUEUE_TIMEOUT": "again",
    "REPOSITORY_GONE": "nothing",
    "SESSION_GONE": "again",
    "SETUP_FAILED": "nothing",
    "USAGE_LIMIT": "again",
    "VERIFY_FAILED": "failed",
    "WORKER_LOST": "again",
    "WORKER_START_FAILED": "again",
    "WORKER_TERMINATION_INCOMPLETE": "again",
    "WORKTREE_FAILED": "again",
}
#: Ends that say nothing whatever the code; `nothing`: a person has decided, or must.
SILENT: dict[State, str] = {
    "timed_out": "again",
    "orphaned": "again",
    "cancelled": "nothing",
    "stale": "nothing",
    "human_attention_required": "nothing",
}


def found(state: State, code: str | None, receipt: Receipt | None) -> str:
    told = validate(state, code, receipt)
    # Twice is the same, and what is no verdict says why.
    assert validate(state, code, receipt) == told
    if told.found != "infrastructure_failure":
        assert told in (PASSED, FAILED)
        return told.found
    assert told.reason
    return "again" if told.again else "nothing"


def test_the_table_is_about_every_code_of_the_product() -> None:
    made = set(agent_verdicts._CODES.values()) | {agent_verdicts.FAILED}
    made |= {agent_verdicts.SESSION_GONE, agent_verdicts.QUESTION}
    for file in Path(forge_actors.__file__).parent.rglob("*.py"):
        if "testing" not in file.parts:
            text = file.read_text("utf-8")
            made |= set(re.findall(r'JobError\(\s*"([A-Z_]{4,})"', text))
    assert {"EXIT_NONZERO", "QUEUE_TIMEOUT", "USAGE_LIMIT"} <= made
    assert made <= CODES.keys()
    assert CODES.keys() >= VERDICTS


@pytest.mark.parametrize("code", [*CODES, None, "SOMETHING_NEW"])
def test_a_failed_check_has_a_verdict_only_by_its_own_doing(code: str | None) -> None:
    wanted = CODES.get(code or "", "again")
    assert found("failed", code, FAILURE) == wanted
    # Without its receipt nobody can say so; a person who denies needs none.
    missing = "again" if wanted == "failed" and code != "DENIED" else wanted
    assert found("failed", code, None) == missing


@pytest.mark.parametrize("state", SILENT)
@pytest.mark.parametrize("code", [*CODES, None])
def test_what_did_not_come_to_its_end_says_nothing(
    state: State, code: str | None
) -> None:
    lasting = CODES.get(code or "") == "nothing"
    wanted = "nothing" if lasting else SILENT[state]
    for receipt in (None, FAILURE, SUCCESS):
        assert found(state, code, receipt) == wanted


def test_what_succeeded_has_passed_if_its_receipt_says_so() -> None:
    assert found("succeeded", None, SUCCESS) == "passed"
    for receipt in (None, FAILURE, make_receipt(signal="SIGTERM"), make_receipt()):
        assert found("succeeded", None, receipt) == "again"


@pytest.mark.parametrize(
    ("signal", "wanted"),
    [("SIGSEGV", "failed"), ("SIGABRT", "failed"), ("SIGKILL", "again")],
)
def test_a_program_that_breaks_itself_has_failed(signal: str, wanted: str) -> None:
    assert found("failed", "SIGNALLED", make_receipt(signal=signal)) == wanted
    assert found("failed", "SIGNALLED", None) == "again"


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_what_cannot_be_read_says_nothing(state: State) -> None:
    told = validate(state, None, None, malformed=True)
    assert (told.found, told.again) == ("infrastructure_failure", True)


def test_every_end_is_in_a_table() -> None:
    assert {*SILENT, "succeeded", "failed"} == TERMINAL
    for state in set(STATES) - TERMINAL:
        with pytest.raises(AssertionError):
            validate(state, None, None)
