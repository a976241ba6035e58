"""Priorities P0 (most urgent) to P4, and how waiting raises them."""

from __future__ import annotations

from math import inf

PRIORITIES = ("P0", "P1", "P2", "P3", "P4")
DEFAULT_PRIORITY = "P2"
#: A waiting job gains one step of priority for every such span, in seconds.
AGEING_STEP = 30 * 60.0

#: Sorts behind every id.
_LAST = "~"

#: The order of jobs: effective priority, then queue time, then id.
Rank = tuple[int, float, str]


def effective(priority: int, queued_at: float, now: float) -> int:
    """The priority a job has after ageing: 0 is the most urgent.

    A clock that was set back gives a negative age, which raises nothing.
    """
    return max(0, priority - int(max(0.0, now - queued_at) // AGEING_STEP))


def rank(priority: int, queued_at: float, job: str, now: float) -> Rank:
    """The place of a job among the jobs of its repository; the least comes first."""
    return effective(priority, queued_at, now), queued_at, job


def bound(priority: int, place: Rank, now: float) -> tuple[float, str]:
    """Of the jobs of this priority, those whose queue time and id are less come before
    the `place` of another."""
    raised, queued_at, job = place
    if priority < raised:
        return inf, ""
    older = -inf
    if raised:
        older = now - AGEING_STEP * (priority - raised + 1)
    as_old = now - AGEING_STEP * (priority - raised) if priority > raised else inf
    return max((older, _LAST), min((as_old, _LAST), (queued_at, job)))
