"""Quarantine: claims that nobody gets, though their job has ended.

Something of the attempt may still be alive, and work on what was claimed.
"""

from __future__ import annotations

from msgspec import Struct

from forge_actors.domain.claims import Claim
from forge_actors.domain.errors import Refused
from forge_actors.domain.launch import ProcessIdentity

#: Processes that are named where all of them would be too many.
NAMED_PROCESSES = 8


class Quarantine(Struct, frozen=True):
    """What one attempt left. It ends when all of `remaining` is proven gone."""

    job: str
    repo: str
    attempt: int
    fence: int
    claims: tuple[Claim, ...]
    remaining: tuple[ProcessIdentity, ...]
    reason: str
    since: float


def nothing_kept(job: str) -> Refused:
    return Refused(f"no claims are kept for what job {job} left")


def named(processes: tuple[ProcessIdentity, ...]) -> str:
    """The first pids of these, and how many there are beside them."""
    pids = [str(process.pid) for process in processes[:NAMED_PROCESSES]]
    more = len(processes) - len(pids)
    noun = "process" if len(processes) == 1 else "processes"
    return f"{noun} {', '.join(pids)}" + (f" and {more} more" if more else "")
