"""Scheduling: which windows of a schedule are due, and what becomes of each.

Every window is decided once, with a reason. One that is held back is deferred, and
looked at again at a moment that is known, or when what holds it back is over; it is
missed once it is later than its schedule catches up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, structs

from forge_actors.domain.arriving import (
    ago,
    arrived,
    at_most,
    recorded,
    without_chance,
)
from forge_actors.domain.causes import Ended
from forge_actors.domain.schedule_waits import woken
from forge_actors.domain.schedules import (
    DAY,
    GRACE,
    Decision,
    Hindrance,
    Occurrence,
    Pending,
    Progress,
    Schedule,
    jitter_of,
)
from forge_actors.domain.triggers import Every, On, Once, passed, windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.triggers import Trigger, Window

#: Seconds until the next look at the latest, where only that tells whether something
#: in its repository holds it back still.
LOOK_AGAIN = 60.0
#: Windows without a chance that are counted one by one, for the record of them.
MAX_COUNTED = 10_000

Verdict = Literal["run", "defer", "cancel", "drop", "pause", "done"]


class Ruling(Struct, frozen=True):
    """What is to be done about one window, and why."""

    verdict: Verdict
    reason: str
    #: For `drop`: what it is recorded as.
    decision: Decision = "deferred"
    #: For `defer`: when to look again at the latest.
    later: float = math.inf


class Situation(Struct, frozen=True):
    """What a ruling goes by besides the schedule."""

    wall: float
    #: Whether the checkout has changes; None is not known.
    dirty: bool | None = None
    #: What holds back those that ask for it, and why.
    hindrances: Mapping[Hindrance, str] = {}
    #: Why no window of any schedule runs now.
    closed: str | None = None


def next_moment(schedule: Schedule) -> float:
    """When there is something to decide about a schedule; infinite for never."""
    progress = schedule.progress
    if schedule.state != "active":
        # What somebody asked for runs whatever holds back its times.
        asked = (entry.moment for entry in progress.pending if entry.asked)
        aside = schedule.state == "quarantined"
        return math.inf if aside else min(asked, default=math.inf)
    moments = [pending.moment for pending in progress.pending]
    trigger = schedule.definition.trigger
    first = next(windows(trigger, progress.cursor, progress.number), None)
    if first is not None:
        moments.append(first.due)
    return min(moments, default=math.inf)


def set_back(schedule: Schedule, wall: float) -> Schedule:
    """A schedule after the clock was set back: an interval begins anew, or nothing
    would run until the clock is where it was; what waits for a moment looks again.

    Times of the day wait, unless the clock was wrong by more than a day."""
    progress, trigger = schedule.progress, schedule.definition.trigger
    ahead = 0.0 if isinstance(trigger, Every) else DAY
    if progress.cursor > wall + ahead:
        progress = structs.replace(progress, cursor=wall)
    pending = tuple(
        structs.replace(entry, moment=min(entry.moment, max(entry.due, wall)))
        if entry.moment < math.inf
        else entry
        for entry in progress.pending
    )
    progress = structs.replace(progress, pending=pending)
    return structs.replace(schedule, progress=progress)


def advance(schedule: Schedule, wall: float) -> tuple[Schedule, list[Occurrence]]:
    """Take in the windows that have passed; what is decided about them already."""
    progress, trigger = schedule.progress, schedule.definition.trigger
    most = at_most(schedule)
    found = passed(trigger, progress.cursor, progress.number, wall, most)
    done: list[Occurrence] = []
    if found.more:
        first = found.last[0]
        count = _no_chance(schedule, first)
        done.append(without_chance(schedule, first, progress.cursor, count, wall))
    schedule, more = arrived(schedule, found.last, wall)
    progress = structs.replace(
        schedule.progress,
        cursor=max(found.after, progress.cursor),
        number=found.number,
    )
    return structs.replace(schedule, progress=progress), done + more


def _no_chance(schedule: Schedule, first: Window) -> int:
    """How many windows came before the first that had a chance."""
    progress, trigger = schedule.progress, schedule.definition.trigger
    ahead = windows(trigger, progress.cursor, progress.number)
    before = takewhile(lambda window: window.due < first.due, ahead)
    return sum(1 for _ in islice(before, MAX_COUNTED))


def rule(schedule: Schedule, entry: Pending, now: Situation) -> Ruling:
    """What is to be done about a window whose moment has come."""
    policies, progress = schedule.definition.policies, schedule.progress
    wall = now.wall
    if now.closed is not None and entry.asked:
        return Ruling("defer", now.closed)
    if entry.asked:
        return _overlapping(schedule) or Ruling("run", "somebody asked for it", "run")
    jitter = jitter_of(schedule.id, entry.key, policies.jitter)
    late = wall - entry.due - jitter
    if policies.misfire == "skip" and not entry.reason and wall - entry.moment > GRACE:
        reason = f"it is {ago(late)} late, and misfire is skip"
        return Ruling("drop", reason, "missed")
    if late > policies.catch_up + GRACE:
        why = f": {entry.reason}" if entry.reason else ""
        reason = f"it was held back for longer than catch_up{why}"
        return Ruling("drop", reason, "missed")
    if policies.until is not None and wall >= policies.until:
        return Ruling("done", "its last moment has passed", "stopped")
    if policies.max_runs is not None and progress.runs >= policies.max_runs:
        return Ruling("done", f"it ran {progress.runs} times", "stopped")
    if policies.max_failures and progress.failures >= policies.max_failures:
        reason = f"{progress.failures} of its jobs failed in a row"
        return Ruling("pause", reason, "stopped")
    if now.closed is not None:
        return Ruling("defer", now.closed)
    if policies.when_clean and now.dirty is not False:
        reason = (
            "the checkout has changes"
            if now.dirty
            else "it is not known whether the checkout is clean"
        )
        return Ruling("defer", reason, later=wall + LOOK_AGAIN)
    for each in policies.not_while:
        if each in now.hindrances:
            return Ruling("defer", now.hindrances[each], later=wall + LOOK_AGAIN)
    held = _held_until(progress, schedule, wall)
    if held is not None:
        return held
    overlap = _overlapping(schedule)
    if overlap is not None:
        return overlap
    if policies.shadow:
        return Ruling("drop", "it would run now; it is a shadow", "would_run")
    return Ruling("run", _on_time(late, entry.cause), "run")


def _held_until(progress: Progress, schedule: Schedule, wall: float) -> Ruling | None:
    policies = schedule.definition.policies
    end, trigger = progress.last_end, schedule.definition.trigger
    start = progress.last_start
    if isinstance(trigger, On) and start is not None:
        least = trigger.least
        if wall < start + least <= wall + least:
            return Ruling("defer", "it started not long ago", later=start + least)
    if end is not None and progress.failures and policies.backoff:
        wait = policies.backoff * 2.0 ** min(16, progress.failures - 1)
        until = end + min(wait, policies.max_backoff)
        if wall < until <= wall + policies.max_backoff:
            count = progress.failures
            return Ruling("defer", f"backoff after {count} failures", later=until)
    if end is not None and wall < end + policies.cooldown <= wall + policies.cooldown:
        return Ruling("defer", "cooldown", later=end + policies.cooldown)
    budget = policies.daily_budget
    today = math.floor(wall / DAY)
    if budget is not None and progress.day == today and progress.spent >= budget:
        reason = f"its jobs ran {progress.spent:.0f} s today, the daily budget"
        return Ruling("defer", reason, later=(today + 1) * DAY)
    return None


def _overlapping(schedule: Schedule) -> Ruling | None:
    jobs = schedule.progress.jobs
    if not jobs:
        return None
    match schedule.definition.policies.overlap:
        case "skip":
            reason = f"job {jobs[0]} of the window before has not ended"
            return Ruling("drop", reason, "overlapped")
        case "queue":
            return Ruling("defer", f"it waits for the end of job {jobs[0]}")
        case "cancel":
            reason = f"job {jobs[0]} of the window before is cancelled for it"
            return Ruling("cancel", reason)


def ruled(
    schedule: Schedule, entry: Pending, ruling: Ruling, wall: float
) -> tuple[Schedule, Occurrence]:
    """A schedule with a window that is not to run now, and the record of it."""
    match ruling.verdict:
        case "defer" | "cancel":
            later = structs.replace(entry, moment=ruling.later, reason=ruling.reason)
            held = _with(schedule, entry, later)
            return held, recorded(schedule, entry, wall, "deferred", ruling.reason)
        case "pause":
            schedule = structs.replace(schedule, state="paused", why=ruling.reason)
        case "done":
            schedule = structs.replace(schedule, state="done", why=ruling.reason)
        case _ if ruling.decision == "failed":
            failures = schedule.progress.failures + 1
            progress = structs.replace(
                schedule.progress, failures=failures, last_end=wall
            )
            schedule = structs.replace(schedule, progress=progress)
        case _:
            pass
    told = recorded(schedule, entry, wall, ruling.decision, ruling.reason)
    return over(_with(schedule, entry, None)), told


def submitted(
    schedule: Schedule, entry: Pending, reason: str, job: str, wall: float
) -> tuple[Schedule, Occurrence]:
    """A schedule one of whose windows has its job."""
    schedule = _with(schedule, entry, None)
    progress = schedule.progress
    jobs = progress.jobs if job in progress.jobs else (*progress.jobs, job)
    progress = structs.replace(
        progress, jobs=jobs, runs=progress.runs + 1, last_start=wall
    )
    told = recorded(schedule, entry, wall, "run", reason)
    schedule = structs.replace(schedule, progress=progress)
    return over(schedule), structs.replace(told, job=job)


def ended(
    schedule: Schedule, job: str, wall: float, *, good: bool, ran: float
) -> Schedule:
    """A schedule one of whose jobs has ended, after it ran so many seconds."""
    progress = schedule.progress
    if job not in progress.jobs:
        return schedule
    today = math.floor(wall / DAY)
    spent = progress.spent if progress.day == today else 0.0
    progress = woken(schedule, wall).progress
    progress = structs.replace(
        progress,
        jobs=tuple(other for other in progress.jobs if other != job),
        failures=0 if good else progress.failures + 1,
        last_end=wall,
        day=today,
        spent=spent + ran,
    )
    return structs.replace(schedule, progress=progress)


def over(schedule: Schedule) -> Schedule:
    """The same, or one that is done, if no window of it comes any more."""
    progress, trigger = schedule.progress, schedule.definition.trigger
    once = progress.number > 0 and not progress.pending
    if schedule.state == "active" and once and comes_once(trigger):
        why = "what it waited for" if isinstance(trigger, On) else "its moment"
        return structs.replace(schedule, state="done", why=f"{why} has passed")
    return schedule


def looked_again(schedule: Schedule, wall: float) -> Schedule:
    """A schedule whose windows that are held back are looked at now."""
    pending = tuple(
        structs.replace(entry, moment=min(entry.moment, max(entry.due, wall)))
        if entry.reason and entry.moment < math.inf
        else entry
        for entry in schedule.progress.pending
    )
    progress = structs.replace(schedule.progress, pending=pending)
    return structs.replace(schedule, progress=progress)


def only_waits(before: Schedule, now: Schedule) -> bool:
    """Whether nothing became of it but that its windows wait for another moment."""
    entries = before.progress.pending
    if len(entries) != len(now.progress.pending):
        return False
    pending = tuple(
        structs.replace(entry, moment=other.moment)
        for entry, other in zip(now.progress.pending, entries, strict=True)
    )
    progress = structs.replace(now.progress, pending=pending)
    return structs.replace(now, progress=progress) == before


def comes_once(trigger: Trigger) -> bool:
    """Whether it has one window at most."""
    if not isinstance(trigger, On):
        return isinstance(trigger, Once)
    return isinstance(trigger.cause, Ended) and trigger.cause.jobs.by == "job"


def resumed(schedule: Schedule, wall: float, seen: str | None = None) -> Schedule:
    """A schedule that goes on from now; what passed in its pause does not count, nor
    what came to pass until it was `seen` so far."""
    trigger, progress = schedule.definition.trigger, schedule.progress
    found = passed(trigger, progress.cursor, progress.number, wall, 1)
    progress = structs.replace(
        progress,
        cursor=max(found.after, progress.cursor),
        number=found.number,
        pending=tuple(entry for entry in progress.pending if entry.asked),
        failures=0,
        seen=seen,
        begun=progress.begun + 1,
        blind="",
    )
    return over(structs.replace(schedule, state="active", why=None, progress=progress))


def _with(schedule: Schedule, old: Pending, new: Pending | None) -> Schedule:
    others = [e for e in schedule.progress.pending if e.key != old.key]
    pending = (*others, *([] if new is None else [new]))
    progress = structs.replace(schedule.progress, pending=pending)
    return structs.replace(schedule, progress=progress)


def _on_time(late: float, cause: str) -> str:
    if late <= GRACE:
        return cause or "it is time"
    begin = f"{cause}; " if cause else ""
    return f"{begin}it is {ago(late)} late, and caught up"


def preview(schedule: Schedule, wall: float) -> Iterator[tuple[float, bool, str]]:
    """The times at which a schedule comes next, whether it would run, and why.

    As if each job ended at once and well; of what cannot be known it says nothing.
    """
    if schedule.state == "quarantined":
        return
    trigger, progress = schedule.definition.trigger, schedule.progress
    policies = schedule.definition.policies
    last_end, runs = progress.last_end, progress.runs
    # From now on: in a pause a year of them may have passed.
    begin = passed(
        trigger, progress.cursor, progress.number, wall - policies.jitter - 1.0, 1
    )
    for window in windows(trigger, max(progress.cursor, begin.after), begin.number):
        due = window.due + jitter_of(schedule.id, window.key, policies.jitter)
        if due < wall:
            continue
        if schedule.state != "active":
            yield due, False, f"it is {schedule.state}: {schedule.why}"
            continue
        then = structs.replace(
            progress, jobs=(), last_end=last_end, runs=runs, failures=0
        )
        entry = Pending(window.key, window.due, due)
        ruling = rule(
            structs.replace(schedule, progress=then), entry, Situation(due, dirty=False)
        )
        yield due, ruling.verdict == "run", ruling.reason
        if ruling.verdict == "run":
            last_end, runs = due, runs + 1
        elif ruling.verdict == "done":
            return
