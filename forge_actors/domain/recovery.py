"""What becomes of a job whose attempt is over: one decision for every way of ending.

The same function decides when an exit is told, when a runtime starts and finds what an
earlier one left, and when what was lost is found out, so that they can never disagree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct, structs

from forge_actors.domain.accounts import ATTENTION, Refusal, refusal_of
from forge_actors.domain.agent_verdicts import (
    NO_END,
    OURS,
    QUESTION,
    SESSION_GONE,
    fault,
    is_good,
    question_of,
    refused,
)
from forge_actors.domain.called_off import called_off
from forge_actors.domain.jobs import WAITING, JobError
from forge_actors.domain.last_lines import last_lines
from forge_actors.domain.quarantine import named
from forge_actors.domain.redaction import redact
from forge_actors.domain.scopes import provider_in
from forge_actors.domain.verifying import (
    VERIFY_FAILED,
    CheckReport,
    Verify,
    check_next,
    how_failed,
    mend_next,
    why_no_round,
)

if TYPE_CHECKING:
    from forge_actors.domain.agents import AgentReport, LimitHit
    from forge_actors.domain.backoff import Backoff
    from forge_actors.domain.jobs import Job, State
    from forge_actors.domain.launch import Receipt

#: Why the runtime itself ends an attempt: a person's cancel, or its own stop.
#: `detached` ends none: the runtime stops and what runs goes on.
StopReason = Literal["cancelled", "shutdown", "detached"]

#: Begins what the program that sets up a worktree writes itself.
_SETUP_SAYS = "forge-actors: set-up "


class Evidence(Struct, frozen=True):
    """What is known at the moment `now` of an attempt that is over.

    Without a `receipt` it was never launched, unless the job is known to have run.
    """

    receipt: Receipt | None = None
    #: Why the runtime ended it, if it did.
    stopped: StopReason | None = None
    #: The job that it handed its work to.
    child: str | None = None
    #: Its execution budget had run out when it was lost.
    overdue: bool = False
    now: float = 0.0
    #: Seconds by which the wall clock, which limits are told by, is ahead of `now`.
    ahead: float = 0.0
    #: A job may wait until a person has seen to what refuses it.
    attended: bool = True
    #: No worktree could be made, and it has a checkout to wait for.
    has_checkout: bool = False


class Outcome(Struct, frozen=True):
    """The state a job goes to.

    With `again` it waits for another attempt, `delay` seconds at least. With `accepted`
    it has succeeded in that it handed its work to that job.
    """

    state: State
    error: JobError | None = None
    delay: float = 0.0
    accepted: str | None = None
    #: A provider refused it, so the attempt does not count.
    refusal: Refusal | None = None
    #: The attempt is not among those that the job may have.
    uncounted: bool = False
    #: It is isolated no more.
    returns: bool = False
    #: Its next step begins: its check, or a round of mending what that found.
    verify: Verify | None = None

    @property
    def again(self) -> bool:
        return self.state in WAITING


def decide(job: Job, known: Evidence, backoff: Backoff) -> Outcome:
    """The one verdict for an attempt that is over.

    The success of one whose work is to be checked is that it is checked next.
    """
    if job.checking:
        return _checked(job, known, backoff)
    outcome = _within_budget(job, known, backoff)
    if job.verify is None or outcome.state != "succeeded" or outcome.accepted:
        return outcome
    receipt = known.receipt
    assert receipt is not None, "it has succeeded"
    if receipt.remaining:
        return _orphaned(receipt)
    if (error := called_off(known.stopped, receipt)) is not None:
        return Outcome("cancelled", error)
    check = check_next(job, receipt)
    return Outcome("waiting_for_heavy_check", verify=check)


def _within_budget(job: Job, known: Evidence, backoff: Backoff) -> Outcome:
    """No other attempt follows, and one that was ended for it has failed, if a budget
    is spent."""
    outcome = _decide(job, known, backoff)
    told = None if known.receipt is None else known.receipt.agent
    if told is None or told.spent is None or outcome.accepted is not None:
        return outcome
    lost = ("failed", "human_attention_required")
    ended = told.stopped_for_budget and outcome.state in lost
    if outcome.again or ended:
        return Outcome("failed", JobError("BUDGET_SPENT", told.spent))
    return outcome


#: How the attempt of a check ends that is neither good nor was it interrupted.
_CHECK_FAILURES = frozenset({"EXIT_NONZERO", "EXECUTION_TIMEOUT", "OUT_OF_MEMORY"})


def _checked(job: Job, known: Evidence, backoff: Backoff) -> Outcome:
    """Of an attempt of the check: it can be repeated, whatever the job may."""
    verify = job.verify
    assert verify is not None, "it is checked"
    check = structs.replace(job, kind="check", replay="safe")
    # While nobody was there its time ran out: that says nothing of the work.
    outcome = _decide(check, structs.replace(known, overdue=False), backoff)
    code = None if outcome.error is None else outcome.error.code
    died = code == "SIGNALLED" and outcome.state == "failed"
    receipt = known.receipt
    if receipt is None or not (died or code in _CHECK_FAILURES):
        return outcome
    report = receipt.check or CheckReport()
    how = how_failed(receipt)
    stop = why_no_round(verify, report)
    said = filter(None, map(last_lines, (report.said, receipt.stderr_tail)))
    tail = "".join(f"\n{text}" for text in said)
    if stop is not None:
        why = f"its check failed, {how}; {stop}{tail}"
        return Outcome("failed", JobError(VERIFY_FAILED, why))
    step = mend_next(job, how, report.likeness)
    why = f"its check failed, {how}; round {step.round} of {step.rounds}{tail}"
    return Outcome("queued", JobError(VERIFY_FAILED, why), verify=step)


def _decide(job: Job, known: Evidence, backoff: Backoff) -> Outcome:
    """What follows from how it ended.

    Interruptions (not the job's own doing) are repeated only if its replay policy
    allows; own exits and failed starts only under `always`. What never began begins
    again whatever the policy.
    """
    receipt = known.receipt
    set_up = receipt is None or receipt.setup_error is None
    asked = question_of(receipt) if receipt is not None and set_up else None
    if asked is not None and known.stopped != "cancelled" and receipt is not None:
        return _orphaned(receipt) if receipt.remaining else _asks(asked, known)
    if receipt is not None and set_up and _succeeded(receipt):
        return Outcome("succeeded")
    if receipt is not None and receipt.remaining:
        return _orphaned(receipt)
    if (error := called_off(known.stopped, receipt)) is not None:
        return Outcome("cancelled", error)
    if receipt is None:
        if job.state == "dispatched":
            return _never_began("the service ended before it was started")
        return _lost(job, known, "the service ended while it ran", backoff)
    told = receipt.agent
    if told is not None and receipt.ending in OURS and told.ended_before_stop:
        return _agent_ended(job, known, receipt, told, backoff)
    match receipt.ending:
        case "wall":
            return _timed_out(receipt)
        case "idle":
            why = _with_tail("it printed nothing for too long", receipt)
            return Outcome("timed_out", JobError("IDLE_TIMEOUT", why))
        case "spawn" if known.has_checkout:
            error = JobError("WORKER_START_FAILED", receipt.error or "")
            return Outcome("queued", error, uncounted=True, returns=True)
        case "spawn":
            why = receipt.error or "it did not start"
            why += f"; it used attempt {job.counted}"
            code = receipt.code or "WORKER_START_FAILED"
            return _own_doing(job, JobError(code, why), backoff)
        case "withdrawn" if not has_begun(job, receipt):
            why = receipt.error or "it was withdrawn before it started"
            return structs.replace(_never_began(why), uncounted=True)
        case "lost":
            return _lost(job, known, "the node agent ended while it ran", backoff)
        case "stop" | "cancel" | "owner" if not (set_up and has_begun(job, receipt)):
            return _never_began("it was stopped before it started")
        case "stop" | "cancel" | "owner" | "withdrawn":
            why = "the service stopped while it ran"
            return _interrupted(job, known, "INTERRUPTED", why, backoff)
        case "exit" if receipt.setup_error is not None:
            said = receipt.stderr_tail.splitlines(keepends=True)
            # What the set-up itself has written to the log says the same once more.
            own = "".join(line for line in said if not line.startswith(_SETUP_SAYS))
            why = _with_tail(
                receipt.setup_error, structs.replace(receipt, stderr_tail=own)
            )
            return Outcome("failed", JobError("SETUP_FAILED", why))
        case "exit":
            return _exited(job, known, receipt, backoff)


def fits(job: Job, receipt: Receipt | None) -> bool:
    """Whether a receipt tells of the attempt of a job as it was dispatched.

    One that only says that the attempt was lost may not know its fence.
    """
    if receipt is None or receipt.ending == "lost":
        return True
    return receipt.fence == job.fence


def _succeeded(receipt: Receipt) -> bool:
    if receipt.agent is not None:
        return is_good(receipt, receipt.agent)
    return receipt.ending == "exit" and receipt.exit_code == 0


def has_begun(job: Job, receipt: Receipt | None) -> bool:
    """Whether the program of the attempt is known to have run."""
    if receipt is None:
        return job.state == "running"
    told = receipt.started_at is not None or receipt.identity is not None
    return told or job.state == "running"


def _never_began(why: str) -> Outcome:
    return Outcome("queued", JobError("INTERRUPTED", why))


def _orphaned(receipt: Receipt) -> Outcome:
    how = "was lost" if receipt.ending == "lost" else "ended"
    why = (
        f"it {how}, and what it started could not be proven gone:"
        f" {named(receipt.remaining)}; its claims are kept until it is"
    )
    return Outcome("orphaned", JobError("WORKER_TERMINATION_INCOMPLETE", why))


def _timed_out(receipt: Receipt | None) -> Outcome:
    why = _with_tail("it ran longer than its time limit", receipt)
    return Outcome("timed_out", JobError("EXECUTION_TIMEOUT", why))


def _lost(job: Job, known: Evidence, why: str, backoff: Backoff) -> Outcome:
    """Nobody saw the end of it."""
    if not has_begun(job, known.receipt):
        why = "it was lost while it was being started, so it may have run"
        code = "OPERATION_OUTCOME_AMBIGUOUS"
        return _interrupted(job, known, code, why, backoff)
    if known.overdue and not _accepted(job, known):
        return _timed_out(None)
    return _interrupted(job, known, "WORKER_LOST", why, backoff)


def _exited(job: Job, known: Evidence, receipt: Receipt, backoff: Backoff) -> Outcome:
    if receipt.signal is not None and receipt.out_of_memory:
        why = _with_tail("it used more memory than it may (--memory)", receipt)
        return Outcome("failed", JobError("OUT_OF_MEMORY", why))
    if receipt.signal is not None:
        why = f"{receipt.signal} ended it, sent by someone else"
        return _interrupted(job, known, "SIGNALLED", why, backoff)
    if receipt.exit_code is None:
        why = "its exit status is not known"
        return _interrupted(job, known, "WORKER_LOST", why, backoff)
    if receipt.agent is not None:
        return _agent_ended(job, known, receipt, receipt.agent, backoff)
    code = receipt.exit_code
    again = job.replay == "always" and job.counted < job.exit_attempts
    why = f"attempt {job.counted} exited {code}" if again else f"exit status {code}"
    return _own_doing(job, JobError("EXIT_NONZERO", _with_tail(why, receipt)), backoff)


def _agent_ended(
    job: Job, known: Evidence, receipt: Receipt, told: AgentReport, backoff: Backoff
) -> Outcome:
    if told.session_gone:
        return _begins_anew(job, told)
    error = fault(receipt, told)
    if error.code == NO_END:
        return _interrupted(job, known, error.code, error.message, backoff)
    if told.limit is not None:
        return _refused(job, known, told, told.limit)
    if told.ok is None:
        # Why it ended without a last word is in its stderr, if anywhere.
        error = JobError(error.code, _with_tail(error.message, receipt))
    return _own_doing(job, error, backoff)


def _asks(question: str, known: Evidence) -> Outcome:
    """It waits for a person, if one is there: its attempt does not count."""
    error = JobError(QUESTION, redact(question))
    if not known.attended:
        return Outcome("failed", error)
    return Outcome("waiting_for_approval", error, uncounted=True)


def _begins_anew(job: Job, told: AgentReport) -> Outcome:
    """What it was to resume is not there, and it did nothing. The attempt after it
    resumes nothing, so this comes once for every session that was begun."""
    error = JobError(SESSION_GONE, f"{told.agent} does not know its session any more")
    if job.counted <= job.max_attempts:
        return Outcome("queued", error)
    return Outcome("failed", error)


def _refused(job: Job, known: Evidence, told: AgentReport, hit: LimitHit) -> Outcome:
    """Its provider did not serve it: it waits until that does, or for a person."""
    error = refused(told.agent, hit)
    has_account = provider_in(job.tokens) is not None
    helpless = not (has_account and known.attended)
    if hit.own or (helpless and hit.kind in ATTENTION):
        return Outcome("failed", error)
    if hit.retry_at is not None:
        hit = structs.replace(hit, retry_at=hit.retry_at - known.ahead)
    refusal = refusal_of(hit, job.id, job.refused, known.now, has_account=has_account)
    state: State = "queued" if hit.kind == "auth" else "waiting_for_limit"
    delay = refusal.delay or 0.0
    return Outcome(state, error, delay, refusal=refusal, uncounted=True)


def _own_doing(job: Job, error: JobError, backoff: Backoff) -> Outcome:
    if job.replay == "always" and job.counted < job.exit_attempts:
        return _again(job, error, backoff)
    return Outcome("failed", error)


def _interrupted(
    job: Job, known: Evidence, code: str, why: str, backoff: Backoff
) -> Outcome:
    if _accepted(job, known):
        return Outcome("succeeded", accepted=known.child)
    # What a job says to our own signal is not why it ended.
    said = known.receipt if code == "SIGNALLED" else None
    if job.replay == "never":
        if code == "SIGNALLED":
            code = "INTERRUPTED"
        why += f" ({_traces(job, known)}); it is not marked as safe to repeat"
        error = JobError(code, _with_tail(why, said))
        return Outcome("human_attention_required", error)
    if code == "OPERATION_OUTCOME_AMBIGUOUS":
        code = "WORKER_LOST"
    if job.counted < job.max_attempts:
        why += f"; attempt {job.counted} of {job.max_attempts}"
        return _again(job, JobError(code, _with_tail(why, said)), backoff)
    why += f"; all {job.max_attempts} attempts are used"
    return Outcome("failed", JobError(code, _with_tail(why, said)))


def _accepted(job: Job, known: Evidence) -> bool:
    """Its work is another job's by now: it was there only to hand it on."""
    return job.kind == "dispatch-task" and known.child is not None


def _again(job: Job, error: JobError, backoff: Backoff) -> Outcome:
    delay = backoff.delay(job.id, job.counted)
    return Outcome("waiting_for_retry" if delay > 0 else "queued", error, delay)


def _traces(job: Job, known: Evidence) -> str:
    """What is known of an attempt, for whoever has to look what it did."""
    receipt = known.receipt
    parts = [f"attempt {job.attempt}"]
    if receipt is not None and receipt.identity is not None:
        parts.append(f"process {receipt.identity.pid}")
    began = job.started_at if receipt is None else receipt.started_at or job.started_at
    if began is not None:
        ended = known.now if receipt is None else receipt.ended_at
        parts.append(f"begun {max(0.0, ended - began):.0f} s before")
    return ", ".join(parts)


def _with_tail(why: str, receipt: Receipt | None) -> str:
    """`why`, and the last lines of stderr behind it if there are any."""
    tail = "" if receipt is None else last_lines(receipt.stderr_tail)
    return f"{why}: {tail}" if tail else why
