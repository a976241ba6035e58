"""What becomes of a job whose attempt ended: one decision for every way of ending.

The same function decides when the parent sees an exit, when a restarted runtime finds
a receipt, and when it finds none, so that the paths can never disagree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from forge_actors.domain.jobs import JobError
from forge_actors.domain.redaction import REDACTED, redact

if TYPE_CHECKING:
    from forge_actors.domain.jobs import Job, State
    from forge_actors.domain.launch import Receipt

#: Why the runtime itself ends an attempt: a person's cancel, or its own stop.
#: `detached` ends none: the runtime stops and what runs goes on.
StopReason = Literal["cancelled", "shutdown", "detached"]

#: How much of the end of an attempt's stderr its error tells.
LAST_LINES = 5
LAST_CHARACTERS = 1000

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
# The end of a key block whose beginning is not in the tail.
_END_OF_KEY = re.compile(
    r"\A(?:(?!-----BEGIN )[\s\S])*?(?:[A-Za-z0-9+/=]+\s+)*"
    r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
)


class Outcome(Struct, frozen=True):
    """The state a job goes to; `again` means it is queued for another attempt."""

    state: State
    error: JobError | None = None

    @property
    def again(self) -> bool:
        return self.state == "queued"


def decide(
    job: Job, receipt: Receipt | None, stopped: StopReason | None = None
) -> Outcome:
    """The one verdict for an attempt that is over.

    `receipt` is None when the attempt was never launched. Interruptions (not the job's
    own doing) are repeated only if its replay policy allows; own exits only under
    `always`.
    """
    if receipt is None:
        if job.state == "running":
            return _interrupted(job, "WORKER_LOST", "the service ended while it ran")
        why = "the service ended before it was started"
        return Outcome("queued", JobError("INTERRUPTED", why))
    if receipt.ending == "exit" and receipt.exit_code == 0:
        return Outcome("succeeded")
    if receipt.ending == "cancel" and stopped is None:
        stopped = "cancelled"
    if stopped == "cancelled":
        return Outcome("cancelled", JobError("CANCELLED", "it was cancelled"))
    if receipt.ending == "stop" and receipt.started_at is None:
        return Outcome("queued", JobError("INTERRUPTED", "it had not started yet"))
    match receipt.ending:
        case "wall":
            why = _with_tail("it ran longer than its time limit", receipt)
            return _timed_out("EXECUTION_TIMEOUT", why)
        case "idle":
            why = _with_tail("it printed nothing for too long", receipt)
            return _timed_out("IDLE_TIMEOUT", why)
        case "spawn":
            return Outcome(
                "failed",
                JobError("WORKER_START_FAILED", receipt.error or "it did not start"),
            )
        case "lost":
            return _interrupted(job, "WORKER_LOST", "the node agent ended while it ran")
        case "stop" | "cancel" | "owner":
            return _interrupted(job, "INTERRUPTED", "the service stopped while it ran")
        case "exit":
            return _own_exit(job, receipt)


def _own_exit(job: Job, receipt: Receipt) -> Outcome:
    if receipt.signal is not None and receipt.out_of_memory:
        why = _with_tail("it used more memory than it may (--memory)", receipt)
        return Outcome("failed", JobError("OUT_OF_MEMORY", why))
    if receipt.signal is not None:
        why = f"{receipt.signal} ended it, sent by someone else"
        return _interrupted(job, "SIGNALLED", why, receipt)
    code = receipt.exit_code
    if job.replay == "always" and job.attempt < job.exit_attempts:
        why = _with_tail(f"attempt {job.attempt} exited {code}", receipt)
        return Outcome("queued", JobError("EXIT_NONZERO", why))
    why = _with_tail(f"exit status {code}", receipt)
    return Outcome("failed", JobError("EXIT_NONZERO", why))


def _interrupted(
    job: Job, code: str, why: str, receipt: Receipt | None = None
) -> Outcome:
    """`receipt` is given if the job's own last words may tell more."""
    state: State = "failed"
    if job.replay == "never":
        state = "human_attention_required"
        if code == "SIGNALLED":
            code = "INTERRUPTED"
        why += "; it is not marked as safe to repeat"
    elif job.attempt < job.max_attempts:
        state = "queued"
        why += f"; attempt {job.attempt} of {job.max_attempts}"
    else:
        why += f"; all {job.max_attempts} attempts are used"
    return Outcome(state, JobError(code, _with_tail(why, receipt)))


def _attention(code: str, why: str) -> Outcome:
    return Outcome("human_attention_required", JobError(code, why))


def _timed_out(code: str, why: str) -> Outcome:
    return Outcome("timed_out", JobError(code, why))


def _with_tail(why: str, receipt: Receipt | None) -> str:
    """`why`, and the last lines of stderr behind it if there are any."""
    tail = "" if receipt is None else last_lines(receipt.stderr_tail)
    return f"{why}: {tail}" if tail else why


def last_lines(text: str) -> str:
    """The last lines of stderr that say something, without secrets, and not long.

    Redacted before it is cut: half a secret could not be recognised any more.
    """
    text = redact(_END_OF_KEY.sub(REDACTED, _ESCAPES.sub("", text)))
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    last = "\n".join(lines[-LAST_LINES:])
    if len(last) <= LAST_CHARACTERS:
        return last
    last = last[-LAST_CHARACTERS:]
    # Not the rest of a path either: a part of one is not recognised when it is shown.
    return f"…{last[_first_space(last) :]}"


def _first_space(text: str) -> int:
    found = re.search(r"\s", text)
    return 0 if found is None else found.start()
