"""Whether an agent succeeded, and if not, what failed.

Three things have to hold: it exited 0, it told a final event, and that had no error.
One that we ended after a good final event counts as exited 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.jobs import JobError

if TYPE_CHECKING:
    from forge_actors.domain.agents import AgentReport, LimitHit, LimitKind
    from forge_actors.domain.launch import Ending, Receipt

#: How an attempt ends that we, or somebody who asked us to, have ended.
OURS: frozenset[Ending] = frozenset({"stop", "cancel", "wall", "idle", "owner"})
#: Its final event is missing: what it did is unknown.
NO_END = "INTERRUPTED"
#: It asks something, and nobody has answered.
QUESTION = "QUESTION"
#: The session that it was to resume does not exist: nothing was done.
SESSION_GONE = "SESSION_GONE"
#: Its final event says that it failed, for no reason that has a code.
FAILED = "AGENT_FAILED"

_CODES: dict[LimitKind, str] = {
    "usage": "USAGE_LIMIT",
    "rate": "USAGE_LIMIT",
    "overload": "USAGE_LIMIT",
    "auth": "PROVIDER_AUTH",
    "budget": "BUDGET_SPENT",
}
_WORDS: dict[LimitKind, str] = {
    "usage": "has used up what its account may use",
    "rate": "was refused: too many requests",
    "overload": "was refused: its service is overloaded",
    "auth": "is not logged in",
    "budget": "has spent its budget",
}
#: Characters of what an agent said that an error repeats.
SAID = 500


def is_good(receipt: Receipt, told: AgentReport) -> bool:
    """Whether the attempt did what it was to do."""
    if told.ok is not True or is_empty(told):
        return False
    if receipt.ending == "exit":
        return receipt.exit_code == 0
    return receipt.ending in OURS and told.in_time


def question_of(receipt: Receipt) -> str | None:
    """What the attempt asked before it ended, without going on by itself."""
    told = receipt.agent
    if told is None or told.question is None or told.limit is not None:
        return None
    ended = receipt.ending == "exit" and receipt.signal is None
    if told.ok is None or not (ended or (receipt.ending == "stop" and told.in_time)):
        return None
    return told.question


def is_empty(told: AgentReport) -> bool:
    """Its final event is there, and it neither said nor did anything."""
    return told.ok is True and not told.text.strip() and not told.acted


def fault(receipt: Receipt, told: AgentReport) -> JobError:
    """What failed of an attempt that is over, was not interrupted and is not good."""
    status = receipt.exit_code
    if told.limit is not None:
        return refused(told.agent, told.limit)
    if told.ok is None and status == 0:
        lost = receipt.stdout_lost or told.unread
        why = " (part of its output was not kept)" if lost else ""
        return JobError(NO_END, f"{told.agent} exited 0 without a final event{why}")
    if told.ok is False:
        own = receipt.ending == "exit" and status != 0
        how = f"failed, exit status {status}" if own else "failed"
        code = "EXIT_NONZERO" if own else FAILED
        return JobError(code, f"{told.agent} {how}: {_said(told)}")
    if is_empty(told):
        why = "ended well, and neither said nor did anything"
        return JobError("EMPTY_RESULT", f"{told.agent} {why}")
    end = "without a final event" if told.ok is None else "after a good final event"
    return JobError("EXIT_NONZERO", f"{told.agent} exited {status} {end}")


def refused(agent: str, limit: LimitHit) -> JobError:
    """That something refused the agent, and what it said of that."""
    said = limit.text.strip()[-SAID:]
    tail = f": {said}" if said else ""
    return JobError(_CODES[limit.kind], f"{agent} {_WORDS[limit.kind]}{tail}")


def _said(told: AgentReport) -> str:
    return told.text.strip()[:SAID] or "it does not say why"
