"""What a schedule waits for in place of a time, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.causes import AllOf, Branch, Files, Issues
from forge_actors.domain.github.watching import BEGIN, IssuesSeen
from forge_actors.domain.redaction import bounded
from forge_actors.domain.schedules import Pending
from forge_actors.domain.scheduling import Situation, rule
from forge_actors.domain.sightings import (
    MAX_SHOWN,
    SHORT,
    CommitSeen,
    EndsSeen,
    RefsSeen,
    missing,
    read,
)
from forge_actors.domain.triggers import On

if TYPE_CHECKING:
    from forge_actors.domain.schedules import Schedule

#: Branches whose commits are told.
MAX_TOLD = 3


def waited_for(schedule: Schedule) -> str | None:
    """What has to come to pass, and how far that is; None: it waits for times only."""
    trigger = schedule.definition.trigger
    if not isinstance(trigger, On):
        return None
    told = trigger.cause.told
    far = _how_far(schedule, trigger)
    blind = schedule.progress.blind
    return "; ".join(
        [told, *([far] if far else []), *([f"not seen now: {blind}"] if blind else [])]
    )


def _how_far(schedule: Schedule, trigger: On) -> str:
    cause, seen = trigger.cause, schedule.progress.seen
    if isinstance(cause, AllOf) and (ends := read(seen, EndsSeen)) is not None:
        return f"not yet: {', '.join(missing(cause, ends))}" if ends.reached else ""
    if isinstance(cause, Branch) and (refs := read(seen, RefsSeen)) is not None:
        heads = sorted(refs.heads.items())
        shown = [
            f"{bounded(name, MAX_SHOWN)} is at {commit[:SHORT]}"
            for name, commit in heads[:MAX_TOLD]
        ]
        more = len(heads) - len(shown)
        return ", ".join(shown + ([f"{more} more"] if more else []))
    if isinstance(cause, Files) and (commit := read(seen, CommitSeen)) is not None:
        return f"seen until {commit.head[:SHORT]}" if commit.head else ""
    if isinstance(cause, Issues):
        issues = read(seen, IssuesSeen)
        if issues is None:
            return "not asked yet"
        return "" if issues.last == BEGIN else f"seen until {issues.last}"
    return ""


def if_it_came(schedule: Schedule, wall: float) -> tuple[bool, str] | None:
    """Whether it would run if what it waits for came to pass now, and why; None: it
    waits for times only, or for nothing any more."""
    waits = waited_for(schedule)
    if waits is None or schedule.state in ("quarantined", "done"):
        return None
    if schedule.state != "active":
        return False, f"when {waits}: it is {schedule.state}: {schedule.why}"
    entry = Pending("ahead", wall, wall, cause="it has come to pass")
    ruling = rule(schedule, entry, Situation(wall, dirty=False))
    runs = ruling.verdict == "run"
    return runs, f"when {waits}" + ("" if runs else f": {ruling.reason}")
