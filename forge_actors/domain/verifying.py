"""Verifying: the check that an agent's job has to pass, and the rounds of mending.

Such a job goes through steps, each of one or more attempts: the agent works, the check
runs in the same folder, and when that fails the agent mends what it found, in the same
session, until the check passes or the rounds are used up. Where a job is in that is
saved with the end of the attempt that brought it there, so a crash repeats no step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct, structs

from forge_actors.domain.agents import AgentReport
from forge_actors.domain.outputs import ToldOutputs

if TYPE_CHECKING:
    from forge_actors.domain.agents import Usage
    from forge_actors.domain.jobs import Job
    from forge_actors.domain.launch import Receipt

#: Seconds a check may take, and how often its failures are given back to be mended.
DEFAULT_SECONDS = 3600.0
DEFAULT_ROUNDS = 3
MAX_ROUNDS = 20
#: Characters of the command of a check.
MAX_COMMAND = 8192

#: What a job does by its attempts: its agent works, that is checked, it is mended.
Step = Literal["work", "check", "mend"]
#: The error of a job whose check failed.
VERIFY_FAILED = "VERIFY_FAILED"


class Verify(Struct, frozen=True, omit_defaults=True):
    """The check of a job, and how far the job is with it."""

    #: A shell command.
    command: str
    #: Seconds that it may take.
    timeout: float = DEFAULT_SECONDS
    #: How often the agent may mend what it finds.
    rounds: int = DEFAULT_ROUNDS
    #: The check comes next, or runs; else the agent.
    checking: bool = False
    #: Attempts that the job had had when this step began, and how many of those count
    #: no more among those that it may have.
    entered: int = 0
    passed: int = 0
    #: The last round of mending that was begun.
    round: int = 0
    #: Those of its attempts, before this step, that were checks.
    checks: tuple[int, ...] = ()
    #: How the last check failed, in words, and what two that failed alike share.
    failed: str = ""
    likeness: str | None = None
    #: The tokens that its agent needs, while it is checked without them.
    tokens: tuple[str, ...] = ()
    #: What the agent told at the end of its last step; the usage is that of all steps.
    work: AgentReport | None = None
    #: The outputs of that step.
    outputs: ToldOutputs | None = None

    @property
    def step(self) -> Step:
        """What comes next, or runs."""
        return "check" if self.checking else "mend" if self.round else "work"

    @property
    def begun(self) -> bool:
        """The agent has worked: the job cannot move to another folder any more."""
        return self.checking or self.entered > 0

    def is_check(self, attempt: int) -> bool:
        """Whether that attempt is, or was, one of the check."""
        return attempt in self.checks or (self.checking and attempt > self.entered)


class CheckReport(Struct, frozen=True, omit_defaults=True):
    """What is known of an attempt of a check that failed."""

    #: The end of what it printed.
    said: str = ""
    #: Two failures with the same one are alike: in what they printed, numbers apart,
    #: and in the files. None: nobody can tell.
    likeness: str | None = None
    #: Which budget of the job is spent, if one is: nothing can be mended then.
    spent: str | None = None


def asked_for(verify: Verify) -> Verify:
    """The same as it was asked for: a job made anew has done nothing of it."""
    return Verify(verify.command, verify.timeout, verify.rounds)


def check_next(job: Job, receipt: Receipt) -> Verify:
    """The agent of a job has worked well: the check is next."""
    verify = job.verify
    assert verify is not None, "its work is checked"
    return structs.replace(
        verify,
        checking=True,
        entered=job.attempt,
        passed=verify.passed + job.counted,
        tokens=job.tokens,
        work=_together(verify.work, receipt.agent),
        outputs=receipt.outputs,
    )


def mend_next(job: Job, failed: str, likeness: str | None) -> Verify:
    """The check has failed: the agent is to mend that next."""
    verify = job.verify
    assert verify is not None, "its work is checked"
    return structs.replace(
        verify,
        checking=False,
        entered=job.attempt,
        passed=verify.passed + job.counted,
        round=verify.round + 1,
        checks=(*verify.checks, *range(verify.entered + 1, job.attempt + 1)),
        failed=failed,
        likeness=likeness,
        tokens=(),
    )


def how_failed(receipt: Receipt) -> str:
    """How the attempt of a check failed, in words."""
    if receipt.ending == "wall":
        return "it ran longer than it may"
    if receipt.out_of_memory:
        return "it used more memory than it may"
    if receipt.signal is not None:
        return f"{receipt.signal} ended it"
    return f"exit status {receipt.exit_code}"


def why_no_round(verify: Verify, report: CheckReport) -> str | None:
    """Why the agent is not to mend what its check found; None if it is."""
    if verify.round >= verify.rounds:
        if not verify.rounds:
            return "no round of mending was asked for"
        return f"the last of {verify.rounds} rounds of mending is over"
    if report.likeness is not None and report.likeness == verify.likeness:
        return f"round {verify.round} changed nothing, and it failed in the same way"
    if report.spent is not None:
        return f"nothing is mended, as its budget is spent: {report.spent}"
    return None


def verify_view(verify: Verify, attempt: int) -> dict[str, object]:
    """As readers see it, of a job that has had so many attempts."""
    checks = [n for n in range(1, attempt + 1) if verify.is_check(n)]
    return {
        "command": verify.command,
        "timeout": verify.timeout,
        "step": verify.step,
        "round": verify.round,
        "rounds": verify.rounds,
        "checks": checks,
    }


def report_of(verify: Verify | None, told: AgentReport | None) -> AgentReport | None:
    """What the agent of a job told in the end: of a check nothing is told, and what
    was used is that of all steps."""
    if verify is None or verify.work is None:
        return told
    return _together(verify.work, told)


def _together(
    before: AgentReport | None, told: AgentReport | None
) -> AgentReport | None:
    if before is None or told is None:
        return before if told is None else told
    return structs.replace(told, usage=_sum(before.usage, told.usage))


def _sum(before: Usage | None, more: Usage | None) -> Usage | None:
    return more if before is None else before if more is None else before + more
