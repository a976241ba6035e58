"""Blockers: which jobs keep another one from starting, by what they claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.claims import conflict, first_conflict
from forge_actors.domain.isolation import is_of_checkout, isolated
from forge_actors.domain.priority import Rank, rank

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from forge_actors.domain.claims import Claim
    from forge_actors.domain.jobs import Job


def rank_of(job: Job, now: float) -> Rank:
    return rank(job.priority, job.queued_at, job.id, now)


def find_blocker(
    job: Job,
    leases: Mapping[str, tuple[Claim, ...]],
    reservations: Collection[Job],
    now: float,
) -> tuple[str, Claim, bool] | None:
    """Who keeps a job from starting: (that job, the claim, only reserved)."""
    claims = job.claims
    for holder, held in leases.items():
        claim = first_conflict(claims, held)
        # What it has kept itself is in nobody's way but that of others.
        if claim is not None and holder != job.id:
            return holder, claim, False
    if not reservations or job.checking:
        return None  # what it claims it has kept, so whoever reserves it waits for it
    place = rank_of(job, now)
    for first in reservations:
        if rank_of(first, now) < place:
            claim = first_conflict(claims, first.claims)
            if claim is not None:
                return first.id, claim, True
    return None


def only_checkout(
    job: Job,
    leases: Mapping[str, tuple[Claim, ...]],
    reservations: Collection[Job],
    now: float,
) -> tuple[str, ...]:
    """Who keeps a job from starting, if none of them does by anything but a claim of a
    checkout; nobody if one does, or would keep it from a worktree of its own."""
    place = rank_of(job, now)
    there = isolated(job.claims, job.id)
    ahead = (first for first in reservations if rank_of(first, now) < place)
    held = [*leases.items(), *((first.id, first.claims) for first in ahead)]
    found: dict[str, None] = {}
    for holder, claims in held:
        if first_conflict(there, claims) is not None:
            return ()  # one that only reads becomes one that writes
        for mine, theirs in _conflicts(job.claims, claims):
            if not (is_of_checkout(mine) and is_of_checkout(theirs)):
                return ()
            found[holder] = None
    return tuple(found)


def _conflicts(
    wanted: tuple[Claim, ...], held: tuple[Claim, ...]
) -> Iterator[tuple[Claim, Claim]]:
    return (
        (mine, theirs) for mine in wanted for theirs in held if conflict(mine, theirs)
    )
