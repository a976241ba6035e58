"""What becomes of a job when a store is restored: nothing lost, nothing twice.

A backup tells of a moment that is over. What has happened since is known from the store
that it replaces, as far as that can be read, and from what attempts leave in a home.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from forge_actors.domain.jobs import RESERVED, TERMINAL, JobError

if TYPE_CHECKING:
    from forge_actors.domain.jobs import Replay, State

#: `keep` the row of the backup; `take` that of the store it replaces. `reserve`: a
#: later attempt began, so the next start decides about it as about all that it finds.
#: `ask` a person. `hold` it until a person says that it may start.
Verdict = Literal["keep", "take", "reserve", "ask", "hold"]


class Standing(NamedTuple):
    """Where a store has a job."""

    state: State
    attempt: int
    replay: Replay


class Trace(NamedTuple):
    """The latest attempt of a job that left something in the home.

    `fence` is known if a node agent wrote the attempt down and nobody has decided about
    it since; otherwise there is only its output.
    """

    attempt: int
    fence: int | None
    evidence: str


def settle(
    saved: Standing, newer: Standing | None, trace: Trace | None, *, current: bool
) -> Verdict:
    """What becomes of a job of a backup.

    `newer` is where a later store has it, if one tells. `current` says that the store
    which the backup replaces does, so that the job has not moved without our knowing.
    """
    if saved.state in TERMINAL:
        return "keep"
    standing = newer if newer is not None and moved_on(saved, newer) else saved
    verdict: Verdict = "keep" if standing is saved else "take"
    if standing.state in TERMINAL:
        return verdict
    if trace is not None and trace.attempt > standing.attempt:
        return "ask" if trace.fence is None else "reserve"
    doubtful = not current and standing.state not in RESERVED
    if doubtful and saved.replay == "never":
        return "hold"
    return verdict


def moved_on(saved: Standing, newer: Standing) -> bool:
    """Whether an attempt began or ended, or the job did, since it was saved."""
    return (
        newer.state in TERMINAL
        or newer.attempt > saved.attempt
        or (newer.state in RESERVED) != (saved.state in RESERVED)
    )


def doubt(trace: Trace) -> JobError:
    """Why a person has to look at a job."""
    return JobError(
        "OPERATION_OUTCOME_AMBIGUOUS",
        f"the store was restored, and attempt {trace.attempt} of it began after the"
        f" backup was made ({trace.evidence}); how that ended was lost",
    )
