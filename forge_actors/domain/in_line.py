"""What keeps a ready job from being offered: what others hold or have reserved, and how
many of its repository run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.blockers import find_blocker
from forge_actors.domain.quarantine import named
from forge_actors.domain.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.claims import Claim
    from forge_actors.domain.jobs import Job
    from forge_actors.domain.lanes import Lanes
    from forge_actors.domain.quarantine import Quarantine
    from forge_actors.domain.waiting import WaitingKind


def held_back(
    job: Job,
    since: float,
    lanes: Lanes,
    held: dict[str, tuple[Claim, ...]],
    quarantined: Mapping[str, Quarantine],
    now: float,
) -> tuple[Waiting | None, str]:
    """Which claim keeps a job from being offered, if one does; and what is to be told
    of one that is in its way all the same."""
    reservations = lanes.reservations(now)
    blocker = find_blocker(job, held, reservations, now)
    around = "" if blocker is None else lanes.around(job, held, now)
    if blocker is None or around:
        return None, around
    holder, claim, reserved = blocker
    kind: WaitingKind = "reservation" if reserved else "claim"
    detail = (
        f"{claim} is reserved for {holder}, which waited too long"
        if reserved
        else f"{claim} conflicts with what {holder} holds"
    )
    left = quarantined.get(holder)
    if left is not None:
        detail = (
            f"{claim} is kept for what job {holder} left:"
            f" {named(left.remaining)}, not proven gone for"
            f" {max(0.0, now - left.since):.0f} s; if it is gone:"
            f" forge-actors quarantine release {holder}"
        )
    if any(first is job for first in reservations):
        detail += "; it waited so long that its claims are reserved for it"
    found = Waiting(kind, since, detail, holders=(holder,), resource=str(claim))
    return found, around


def behind(
    leases: Mapping[str, tuple[Claim, ...]], workers: int, since: float, note: str
) -> Waiting:
    """What a job waits for that no claim holds back: a worker."""
    if len(leases) < workers:
        detail = "it is next when a worker is free"
        return Waiting("token", since, detail, note=note)
    return Waiting(
        "token",
        since,
        f"{len(leases)} of {workers} workers of its repository run",
        holders=tuple(leases),
        resource="repository_workers",
        used=len(leases),
        limit=workers,
        note=note,
    )
