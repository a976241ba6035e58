"""Moments, when the wall clock was set while a runtime runs.

Inside a runtime time only goes on: what is due, how old a job is and who is next must
not depend on a hand at the clock. What is stored are moments of the wall clock, for
people, and for the next runtime. So a store adds to what it writes, and takes away from
what it reads, how far the wall clock is ahead of the runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, structs

from forge_actors.domain.launch import Receipt
from forge_actors.domain.worktrees import Worktree

if TYPE_CHECKING:
    from forge_actors.domain.jobs import Job

S = TypeVar("S", bound=Struct)

#: Every field of a change, and of what it carries, that is a moment of the runtime.
MOMENTS = frozenset(
    {
        "added_at",
        "at",
        "created_at",
        "dispatched_at",
        "failing_since",
        "forgotten_at",
        "held_at",
        "last_dispatch",
        "looked_at",
        "queued_at",
        "removed_at",
        "retry_at",
        "sampled_at",
        "since",
        "started_at",
    }
)


def shifted(value: S, seconds: float) -> S:
    """A change, or a part of one, with its moments so much later.

    A receipt is told by others, who look at the wall clock themselves, and so is what
    is known of a worktree.
    """
    fields: dict[str, object] = {}
    for name in value.__struct_fields__:
        inner = getattr(value, name)
        if isinstance(inner, Struct) and not isinstance(inner, Receipt | Worktree):
            fields[name] = shifted(inner, seconds)
        elif name in MOMENTS and isinstance(inner, float):
            fields[name] = inner + seconds
    return structs.replace(value, **fields)


def take_in(job: Job, ahead: float, now: float) -> None:
    """Make the moments of a job that was read those of the runtime.

    It cannot have begun to wait later than now: the clock was set back since, and a job
    that is never as old as others would wait for ever.
    """
    if job.retry_at is not None:
        # Nor may it wait longer from now on than it was to wait at first.
        delay = max(0.0, job.retry_at - job.queued_at)
        job.retry_at = min(job.retry_at - ahead, now + delay)
    job.queued_at = min(job.queued_at - ahead, now)
    if job.held_at is not None:
        job.held_at -= ahead
    if job.started_at is not None:
        job.started_at -= ahead
