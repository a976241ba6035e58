"""Validation: what the end of a check says of what it checked, if it says anything.

A check that came to its end has passed or failed. One that was lost, ran out of time,
was cancelled, could not start, or whose receipt is missing or makes no sense, has found
out nothing: that is a failure of what is around it, an infrastructure failure. It is no
verdict, so whoever waits for one stays where it is, and may ask again.

Nothing is run to find this out, and the same end always says the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct

from forge_actors.domain.jobs import TERMINAL

if TYPE_CHECKING:
    from forge_actors.domain.jobs import State
    from forge_actors.domain.launch import Receipt

Found = Literal["passed", "failed", "infrastructure_failure"]
FOUND: tuple[Found, ...] = get_args(Found)

#: The codes of ends that are the check's own doing.
VERDICTS = frozenset(
    {
        "AGENT_FAILED",
        "DENIED",
        "EMPTY_RESULT",
        "EXIT_NONZERO",
        "OUTPUT_LIMIT",
        "OUT_OF_MEMORY",
        "VERIFY_FAILED",
    }
)
#: Of these an attempt must have ended, so there is a receipt of it.
_OF_ATTEMPTS = VERDICTS - {"DENIED"}
#: Signals by which a program breaks itself; the others were sent by somebody.
_OWN_SIGNALS = frozenset(
    {"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP"}
)
#: What stays as it is until somebody does something, so that another try is no use.
_LASTING = frozenset(
    {
        "BUDGET_SPENT",
        "DEPENDENCY_BLOCKED",
        "PROVIDER_AUTH",
        "REPOSITORY_GONE",
        "SETUP_FAILED",
    }
)
#: The same of states: somebody has ended it, removed what it was for, or has to look.
_DECIDED: frozenset[State] = frozenset(
    {"cancelled", "stale", "human_attention_required"}
)


class Validation(Struct, frozen=True):
    """What was found out, and why not if nothing was."""

    found: Found
    reason: str = ""
    #: It is worth another try without anybody doing something first.
    again: bool = False


PASSED, FAILED = Validation("passed"), Validation("failed")


def validate(
    state: State, code: str | None, receipt: Receipt | None, *, malformed: bool = False
) -> Validation:
    """What a check has found out whose job ended so, with this error and this receipt.

    `malformed`: something of them is there and cannot be read.
    """
    assert state in TERMINAL, f"a job that is {state} has not ended"
    if malformed:
        return _nothing("what was kept of its end cannot be read", again=True)
    if state == "succeeded":
        return _passed(receipt)
    if state == "failed" and code in VERDICTS:
        if receipt is None and code in _OF_ATTEMPTS:
            return _nothing("its receipt is missing", again=True)
        return FAILED
    if state == "failed" and code == "SIGNALLED":
        return _signalled(receipt)
    again = state not in _DECIDED and code not in _LASTING
    return _nothing(f"it is {state}" + (f" ({code})" if code else ""), again=again)


def _passed(receipt: Receipt | None) -> Validation:
    """Nobody takes the word of a state for it: the receipt must say the same."""
    if receipt is None:
        return _nothing("its receipt is missing", again=True)
    if receipt.signal is not None or receipt.exit_code != 0:
        return _nothing("its receipt contradicts that it succeeded", again=True)
    return PASSED


def _signalled(receipt: Receipt | None) -> Validation:
    if receipt is None or receipt.signal is None:
        return _nothing("its receipt is missing", again=True)
    if receipt.signal in _OWN_SIGNALS:
        return FAILED
    return _nothing(f"{receipt.signal} ended it, sent by someone else", again=True)


def _nothing(reason: str, *, again: bool) -> Validation:
    return Validation("infrastructure_failure", reason, again)
