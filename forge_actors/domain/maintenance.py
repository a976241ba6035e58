"""Maintenance: when a clean-up is due, in which order it visits, and what came of it.

What is due is known from what was saved: when the last run began, what ended since, and
the first moment at which something becomes old enough. So nothing has to look.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, structs, to_builtins

from forge_actors.domain.cleaning import (
    CLASSES,
    ClassReport,
    CleanClass,
    CleanRequest,
    Removal,
    Skip,
)
from forge_actors.domain.errors import NotFound
from forge_actors.domain.events import Event
from forge_actors.domain.fence import Claim

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from forge_actors.domain.worktrees import Worktree

#: After so many failures in a row the time between two runs is doubled no more.
MOST_DOUBLINGS = 6
#: Failures in a row from which on people are told that something is wrong.
AGAIN_AND_AGAIN = 3
#: Jobs whose rows one question may ask to have removed.
MAX_ASKED = 500
#: Removals, and things that stay, that one result names. The others are counted.
MAX_NAMED = 1000


class CleanLimits(Struct, frozen=True):
    """How much one run may do."""

    #: Seconds after which a run begins nothing more.
    seconds: float = 40.0
    #: Seconds of the processor, and bytes of memory, after which the system ends it.
    cpu_seconds: int = 60
    memory_bytes: int = 512 << 20
    #: What each class may look at, and remove, in one visit.
    scans: int = 200_000
    removals: int = 10_000


class Policy(Struct, frozen=True):
    """How the settings want it."""

    enabled: bool = True
    #: Seconds from the begin of one run to that of the next, at least.
    period: float = 60.0
    limits: CleanLimits = CleanLimits()
    rules: dict[str, Any] = {}


class CleanOrder(Struct, frozen=True, omit_defaults=True):
    """What the clean-up program is told: its first line."""

    request: CleanRequest
    limits: CleanLimits = CleanLimits()
    #: Whose clean-up it is: it removes nothing once the store has another owner. A dry
    #: run of a home that nobody has is without.
    claim: Claim | None = None
    #: The settings that retention goes by.
    rules: dict[str, Any] = {}


class ClassVisit(Struct, frozen=True):
    """When a class was visited last, and what it came to then."""

    clean_class: CleanClass
    visited_at: float
    #: Where the next visit goes on.
    cursor: str | None = None
    #: None while the visit lasts, and for ever if it never ended.
    report: ClassReport | None = None
    #: Bytes that it had in the home when they were counted last.
    size: int | None = None


class CleanRun(Struct, frozen=True):
    """The runs of a home: the last one, and counts of all."""

    began_at: float
    ended_at: float | None = None
    #: When the last one of all classes began: what ended until then was looked at.
    looked_at: float = 0.0
    runs: int = 0
    failures: int = 0
    #: Failures since the last run that did all it was to do.
    in_a_row: int = 0
    removed: int = 0
    bytes: int = 0
    error: str | None = None
    #: A class was not visited, or has more to do.
    more: bool = False
    #: The first moment at which something that stays is old enough.
    due_at: float | None = None

    @property
    def failures_in_a_row(self) -> int:
        """Without the one that goes on, if one does."""
        return self.in_a_row - (self.ended_at is None)


class CleanResult(Struct):
    """What one run came to."""

    dry_run: bool = False
    reports: list[ClassReport] = []
    #: The first of what was removed, or would be, and of what stays.
    removals: list[Removal] = []
    skips: list[Skip] = []
    #: Why the run as a whole failed; None: it came to its end.
    error: str | None = None

    @property
    def removed(self) -> int:
        return sum(report.removed for report in self.reports)

    @property
    def bytes(self) -> int:
        return sum(report.bytes for report in self.reports)

    @property
    def failed(self) -> int:
        return sum(report.failed for report in self.reports)

    def view(self) -> dict[str, object]:
        """All of it, as readers see it."""
        counts = {"removed": self.removed, "bytes": self.bytes, "failed": self.failed}
        return {**to_builtins(self), **counts}

    @property
    def failure(self) -> str | None:
        """Why it is to be told of as failed, in a sentence; None: all went well."""
        if self.error is not None:
            return self.error
        for report in self.reports:
            if report.failed:
                return f"{report.clean_class}: {report.error}"
        return None


class Books(Protocol):
    """What a clean-up asks of the owner of the store. Each is durable when answered.

    Every method may raise ForgeError: nothing of it was done.
    """

    async def visiting(self, clean_class: CleanClass) -> str | None:
        """A visit begins; where the last one stopped."""

    async def visited(self, report: ClassReport) -> None:
        """It has ended."""

    async def forget_jobs(self, jobs: Sequence[str]) -> list[str]:
        """See `Desk`."""

    async def forget_events(self, before: int) -> int:
        """See `Desk`."""

    async def record(self, worktree: Worktree, step: str) -> None:
        """See `Desk`."""

    async def upkeep(self) -> int:
        """See `Desk`."""


def removed_by_retention(job: str) -> NotFound:
    """What is said of a job that a clean-up has removed."""
    return NotFound(
        f"job {job} had ended, and was removed by retention (settings, [retention])"
    )


def problem(run: CleanRun | None) -> str | None:
    """What is wrong if it fails again and again, in a sentence."""
    if run is None or run.failures_in_a_row < AGAIN_AND_AGAIN:
        return None
    times = f"{run.failures_in_a_row} times in a row"
    return f"the clean-up failed {times}: {run.error or 'it never ended'}"


def oldest_first(
    visited_at: Mapping[CleanClass, float], wanted: Iterable[CleanClass] = ()
) -> list[CleanClass]:
    """The classes in the order in which they are to be visited."""
    chosen = set(wanted) or set(CLASSES)
    order = [name for name in CLASSES if name in chosen]
    return sorted(order, key=lambda name: visited_at.get(name, 0.0))


def next_run(
    run: CleanRun | None, ended_at: float | None, period: float, now: float
) -> float:
    """The moment of the next run by itself; infinite if nothing can be due.

    `ended_at` is when the first job ended since the last run began, or None. Runs that
    fail come at longer and longer intervals.
    """
    dues = []
    if ended_at is not None:
        # A whole period later: what ends together is cleaned together.
        dues.append(min(ended_at, now) + period)
    if run is None:
        return min(dues, default=math.inf)
    # Not later than now, should the clock have been set back since.
    began_at = min(run.began_at, now)
    if run.more or run.in_a_row or run.ended_at is None:
        dues.append(began_at)
    if run.due_at is not None:
        dues.append(run.due_at)
    wait: float = period * 2.0 ** min(run.in_a_row, MOST_DOUBLINGS)
    return max(min(dues, default=math.inf), began_at + wait)


def begun(run: CleanRun | None, request: CleanRequest, now: float) -> CleanRun:
    """What is saved before a run begins, so that one that ends badly is no loop."""
    run = run or CleanRun(0.0)
    return structs.replace(
        run,
        began_at=now,
        ended_at=None,
        # A run of some classes has not looked at what ended for the others.
        looked_at=run.looked_at if request.classes else now,
        runs=run.runs + 1,
        # Counted as failed until it has ended well.
        in_a_row=run.in_a_row + 1,
    )


def cut_short(run: CleanRun, now: float) -> CleanRun:
    """What is saved of a run that ends with its runtime, which is no failure."""
    if run.ended_at is not None:
        return run
    return structs.replace(run, ended_at=now, in_a_row=run.in_a_row - 1, more=True)


def ended(
    run: CleanRun,
    request: CleanRequest,
    result: CleanResult,
    visits: Mapping[CleanClass, ClassVisit],
    now: float,
) -> CleanRun:
    """What is saved when it has ended."""
    failure = result.failure
    reports = [visits[name].report for name in CLASSES if name in visits]
    dues = [each.due_at for each in reports if each and each.due_at is not None]
    more = any(each is None or each.cursor is not None for each in reports)
    if request.classes:
        more = more or run.more
    else:
        more = more or any(
            name not in visits or visits[name].visited_at < run.began_at
            for name in CLASSES
        )
    return structs.replace(
        run,
        ended_at=now,
        failures=run.failures + (failure is not None),
        in_a_row=0 if failure is None else run.in_a_row,
        removed=run.removed + result.removed,
        bytes=run.bytes + result.bytes,
        error=failure,
        more=more,
        due_at=min(dues, default=None),
    )


def told(result: CleanResult, now: float) -> Event | None:
    """The event that tells of a run; None if nothing was removed and nothing failed."""
    data: dict[str, object] = {
        "removed": result.removed,
        "bytes": result.bytes,
        "failed": result.failed,
    }
    classes = {
        each.clean_class: {"removed": each.removed, "bytes": each.bytes}
        for each in result.reports
        if each.removed
    }
    if classes:
        data["classes"] = classes
    if result.failure is not None:
        data["reason"] = result.failure
    if result.error is not None:
        return Event("clean_failed", now, data=data)
    if result.removed or result.failed:
        return Event("clean_ended", now, data=data)
    return None
