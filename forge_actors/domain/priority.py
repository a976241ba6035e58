"""Priorities P0 (most urgent) to P4, and how waiting raises them."""

from __future__ import annotations

PRIORITIES = ("P0", "P1", "P2", "P3", "P4")
DEFAULT_PRIORITY = "P2"
#: A waiting job gains one step of priority for every such span, in seconds.
AGEING_STEP = 30 * 60.0

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
