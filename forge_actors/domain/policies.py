"""Policies: which work is let in and started for now, and what waits.

There is one for the home. `normal` is the usual one and holds nothing back. `exclusive`
starts only the jobs of one work, a workflow instance or an EPIC run. `convergence`
begins nothing new, so that what is open comes to its end. `maintenance` starts nothing.
What runs goes on under all of them, and so do reads, receipts, recovery and clean-ups.
"""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct, field, structs

from forge_actors.domain.errors import (
    AdmissionBlocked,
    ForgeError,
    InvalidInput,
    NotConverging,
    Outdated,
)
from forge_actors.domain.waiting import Waiting

Mode = Literal["normal", "exclusive", "convergence", "maintenance"]
MODES: tuple[Mode, ...] = get_args(Mode)
#: What is done to a work: it is begun, or goes on.
Operation = Literal["create", "continue"]

#: Characters of a reason, and of the id of a work.
MAX_REASON = 500
MAX_WORK = 200
#: The reason of the event by which a policy ends at its moment.
OVER = "its time was over"
ENDS = "forge-actors policy normal ends that"


class Policy(Struct, frozen=True):
    """The policy that is in force, and how often it was changed before."""

    mode: Mode = "normal"
    #: The one whose jobs are started, of `exclusive`.
    work: str | None = None
    reason: str = ""
    #: Since when it has this mode, for this work.
    since: float = 0.0
    #: Seconds of the wall clock: then it is `normal` again.
    until: float | None = None
    revision: int = 0

    @property
    def halts(self) -> bool:
        """Nothing at all is started."""
        return self.mode == "maintenance"

    @property
    def starts(self) -> bool:
        """Anything may be started."""
        return self.mode in ("normal", "convergence")

    def keeps_out(self, work: str | None) -> bool:
        """Jobs of this work are no candidates, while those of another one are."""
        return self.mode == "exclusive" and work != self.work

    def is_over(self, wall: float) -> bool:
        return self.until is not None and self.until <= wall


def in_force(policy: Policy) -> Policy | None:
    """The same, or None if it holds nothing back: then nobody is to ask it anything."""
    return None if policy.mode == "normal" else policy


class PolicyRequest(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The policy that somebody wants. `until` is a time, `for` a span from now on."""

    mode: Mode
    work: str | None = None
    until: str | None = None
    for_: str | float | None = field(default=None, name="for")
    reason: str = ""
    #: Only if this is the revision of the policy now.
    revision: int | None = None


class PolicyView(Struct, frozen=True):
    """The policy as readers see it."""

    mode: Mode
    work: str | None
    reason: str
    since: str | None
    until: str | None
    revision: int
    #: What it means, and what ends it; nothing if it is `normal`.
    note: str = ""


def check_request(request: PolicyRequest) -> None:
    """Raise InvalidInput for what makes no sense, whatever the policy is now."""
    exclusive = request.mode == "exclusive"
    if exclusive and request.work is None:
        raise InvalidInput("work", "is missing: exclusive is for the jobs of one work")
    if request.work is not None:
        if not exclusive:
            raise InvalidInput("work", "is only for the mode exclusive")
        if not 0 < len(request.work) <= MAX_WORK or not request.work.isprintable():
            problem = f"is 1 to {MAX_WORK} printable characters"
            raise InvalidInput("work", problem)
    if len(request.reason) > MAX_REASON:
        raise InvalidInput("reason", f"has more than {MAX_REASON} characters")
    if not request.reason.isprintable():
        raise InvalidInput("reason", "has characters that cannot be printed")
    if request.until is not None and request.for_ is not None:
        raise InvalidInput("for", "cannot be combined with until")
    if request.mode == "normal" and (request.until, request.for_) != (None, None):
        raise InvalidInput("until", "is not for the mode normal, which ends nothing")


def changed(
    known: Policy,
    wanted: Policy,
    now: float,
    *,
    revision: int | None = None,
    narrows: bool = False,
) -> Policy | ForgeError:
    """The policy after somebody asked for another one, or why it is not changed.

    `revision` is the one that is to be changed, None any. With `narrows` what converges
    becomes exclusive; from anything else that is refused.
    """
    same = (known.mode, known.work) == (wanted.mode, wanted.work)
    if narrows and same:
        return known
    if revision is not None and revision != known.revision:
        return Outdated(f"the policy, of revision {known.revision} now,")
    if narrows and known.mode != "convergence":
        return NotConverging(
            f"{NotConverging.code}: the policy is {known.mode}; only what converges can"
            " be narrowed to one work"
        )
    if same and (known.reason, known.until) == (wanted.reason, wanted.until):
        return known
    since = known.since if same else now
    return structs.replace(wanted, since=since, revision=known.revision + 1)


def ended(known: Policy, now: float) -> Policy:
    """The policy after the last moment of this one."""
    return Policy(since=now, revision=known.revision + 1)


# -- what it means -------------------------------------------------------------------


def waiting_for(policy: Policy, queued_at: float) -> Waiting:
    """What a job waits for that it holds back; `until` is as the caller counts."""
    since = max(queued_at, policy.since)
    return Waiting("policy", since, describe(policy), until=policy.until)


def describe(policy: Policy) -> str:
    """What it means for what waits, why it is so, and what ends it."""
    what = {
        "normal": "nothing is held back",
        "exclusive": f"only jobs of work {policy.work} are started",
        "convergence": "nothing new is begun until what is open has ended",
        "maintenance": "nothing is started during maintenance",
    }[policy.mode]
    if policy.mode == "normal":
        return what
    because = f" ({policy.reason})" if policy.reason else ""
    return f"{what}{because}; {ENDS}"


def check_job(policy: Policy, work: str | None, *, child: bool) -> None:
    """Whether a job is accepted: one of a work, or of a job that runs, always is.

    Raises:
        AdmissionBlocked: it would be something new.
    """
    if policy.mode == "convergence" and work is None and not child:
        raise AdmissionBlocked("CONVERGENCE", describe(policy))


def check_work(policy: Policy | None, operation: Operation, work: str | None) -> None:
    """Whether a work may be begun, or go on; None is one that has no id yet.

    Raises:
        AdmissionBlocked: it may not.
    """
    if policy is None:
        return
    if policy.mode == "convergence" and operation == "create":
        raise AdmissionBlocked("CONVERGENCE", describe(policy))
    if policy.keeps_out(work):
        words = f"{operation} is for work {policy.work} alone: {describe(policy)}"
        raise AdmissionBlocked("P0_EXCLUSIVE_WORK", words)


def held_schedules(policy: Policy | None) -> str | None:
    """Why no window of a schedule runs now; None if they do."""
    if policy is None or policy.mode == "normal":
        return None
    return f"the policy is {policy.mode}: {describe(policy)}"
