"""What becomes of a job whose attempt ended: one decision for every way of ending.

The same function decides when the parent sees an exit, when a restarted runtime finds
a receipt, and when it finds none, so that the paths can never disagree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from forge_actors.domain.jobs import JobError

if TYPE_CHECKING:
    from forge_actors.domain.jobs import Job, State
    from forge_actors.domain.launch import Receipt

#: Why the runtime itself asked for the end: a person's cancel, or its own stop.
StopReason = Literal["cancelled", "shutdown"]


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

    `receipt` is None when nothing is known of the attempt. Interruptions (not the job's
    own doing) are repeated only if its replay policy allows; own exits only under
    `always`.
    """
    if receipt is None:
        if job.state == "dispatched" and job.replay == "never":
            return _attention(
                "OPERATION_OUTCOME_AMBIGUOUS",
                "the service ended while the job was being started, so it may have run",
            )
        return _interrupted(job, "WORKER_LOST", "the service ended while it ran")
    if receipt.ending == "exit" and receipt.exit_code == 0:
        return Outcome("succeeded")
    if stopped == "cancelled":
        return Outcome("cancelled", JobError("CANCELLED", "it was cancelled"))
    if receipt.ending == "stop" and receipt.started_at is None:
        return Outcome("queued", JobError("INTERRUPTED", "it had not started yet"))
    match receipt.ending:
        case "wall":
            return _timed_out("EXECUTION_TIMEOUT", "it ran longer than its time limit")
        case "idle":
            return _timed_out("IDLE_TIMEOUT", "it printed nothing for too long")
        case "spawn":
            return Outcome(
                "failed",
                JobError("WORKER_START_FAILED", receipt.error or "it did not start"),
            )
        case "lost":
            return _interrupted(job, "WORKER_LOST", "the node agent ended while it ran")
        case "stop" | "owner":
            return _interrupted(job, "INTERRUPTED", "the service stopped while it ran")
        case "exit":
            return _own_exit(job, receipt)


def _own_exit(job: Job, receipt: Receipt) -> Outcome:
    if receipt.signal is not None:
        return _interrupted(
            job, "SIGNALLED", f"{receipt.signal} ended it, sent by someone else"
        )
    code = receipt.exit_code
    if job.replay == "always" and job.attempt < job.exit_attempts:
        return Outcome(
            "queued", JobError("EXIT_NONZERO", f"attempt {job.attempt} exited {code}")
        )
    return Outcome("failed", JobError("EXIT_NONZERO", f"exit status {code}"))


def _interrupted(job: Job, code: str, why: str) -> Outcome:
    if job.replay == "never":
        if code == "SIGNALLED":
            code = "INTERRUPTED"
        return _attention(code, f"{why}; it is not marked as safe to repeat")
    if job.attempt < job.max_attempts:
        return Outcome(
            "queued",
            JobError(code, f"{why}; attempt {job.attempt} of {job.max_attempts}"),
        )
    return Outcome(
        "failed", JobError(code, f"{why}; all {job.max_attempts} attempts are used")
    )


def _attention(code: str, why: str) -> Outcome:
    return Outcome("human_attention_required", JobError(code, why))


def _timed_out(code: str, why: str) -> Outcome:
    return Outcome("timed_out", JobError(code, why))
