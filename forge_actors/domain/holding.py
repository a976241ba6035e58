"""Does this attempt still hold its job? What a script asks before it changes a thing
that nobody can take back: a push, a deployment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from forge_actors.domain.errors import StaleFence
from forge_actors.domain.jobs import RESERVED

if TYPE_CHECKING:
    from forge_actors.domain.jobs import State

#: Why an attempt does not, or not as it should: it is not the current one (any more),
#: it is being ended, or it is to stand still.
Lost = Literal["FENCING_TOKEN_STALE", "STOPPING", "PAUSED"]


class Holding(Struct, frozen=True):
    """Whether an attempt holds its job; if not, why, as a word and in a sentence."""

    job: str
    attempt: int
    fence: int
    current: bool
    code: Lost | None = None
    reason: str | None = None


class Holder(Struct, frozen=True):
    """A job as it is, and the attempt that it is in or was in last."""

    state: State
    attempt: int
    fence: int | None
    stopping: bool = False
    paused: bool = False


def holding(job: str, attempt: int, fence: int, found: Holder | None) -> Holding:
    """Whether this attempt holds the job, of which `found` is known; None: nothing."""
    code, reason = _lost(job, attempt, fence, found)
    return Holding(job, attempt, fence, code is None, code, reason)


def _lost(
    job: str, attempt: int, fence: int, found: Holder | None
) -> tuple[Lost | None, str | None]:
    if found is None:
        return StaleFence.code, f"no job has the id {job}"
    if (attempt, fence) != (found.attempt, found.fence):
        return StaleFence.code, (
            f"attempt {attempt} with the fence {fence} is not the last one of job"
            f" {job}, which is attempt {found.attempt} with the fence {found.fence}"
        )
    if found.state not in RESERVED:
        return StaleFence.code, f"attempt {attempt} is over: job {job} is {found.state}"
    if found.stopping:
        return "STOPPING", f"job {job} is being stopped"
    if found.paused:
        return "PAUSED", f"job {job} is paused"
    return None, None
