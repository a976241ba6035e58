"""What jobs wait for: in their ledger, and for tokens the place of their offer in line.

A ledger says all but what the counts and the line know: which tokens an offer lacks,
who has them, and how many come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from forge_actors.domain.capacity import WORKERS, Offer, offer_of
from forge_actors.domain.jobs import RESERVED, State
from forge_actors.domain.waiting import Waiting, describe_lack, noun

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.domain.capacity import Capacity
    from forge_actors.domain.lanes import Lane
    from forge_actors.domain.ledger import Ledger
    from forge_actors.domain.line import Line


class Waits(Struct, frozen=True):
    """One job's state as it is now, what it waits for, and how many are before it."""

    state: State
    waiting: Waiting | None = None
    offer: Offer | None = None
    ahead: int = 0


def explain(ledger: Ledger, jobs: Sequence[str], now: float) -> dict[str, Waits]:
    """What these jobs wait for; those that the ledger does not hold are left out.

    How many are before it is only counted for a job that is asked for alone.
    """
    answers: dict[str, Waits] = {}
    alike: dict[Lane, Waiting] = {}
    for job_id in jobs:
        job = ledger.jobs.get(job_id)
        if job is None:
            continue
        if job.state in RESERVED:
            answers[job_id] = Waits(job.state)
            continue
        waiting = ledger.waiting(job_id, now, alike)
        state = ledger.state_of(job_id, waiting)
        offer, ahead = None, 0
        if waiting.kind == "token":
            offer = offer_of(job)
            ahead = ledger.ahead_of(job_id, now) if len(jobs) == 1 else 0
        answers[job_id] = Waits(state, waiting, offer, ahead)
    return answers


def places(
    offers: Sequence[tuple[Offer, int | None, float]],
    capacity: Capacity,
    line: Line,
    now: float,
    jobs_of: Callable[[tuple[str, ...]], tuple[str, ...]],
) -> list[Waiting]:
    """The `place` of each of these offers.

    Where nothing is reserved, and no place is looked for, all that need the same lack
    the same.
    """
    reserved = bool(line.reserved(capacity, now))
    known: dict[tuple[str, tuple[str, ...]], Waiting] = {}
    found = []
    for offer, ahead, since in offers:
        needs = offer.repo, offer.tokens
        same = None if reserved or ahead is not None else known.get(needs)
        if same is None:
            same = place(offer, ahead, since, capacity, line, now, jobs_of)
            if ahead is None:
                known[needs] = same
        found.append(same if same.since == since else replace(same, since=since))
    return found


def place(
    offer: Offer,
    ahead: int | None,
    since: float,
    capacity: Capacity,
    line: Line,
    now: float,
    jobs_of: Callable[[tuple[str, ...]], tuple[str, ...]],
) -> Waiting:
    """What the job of an offer waits for, as the counts and the line say.

    `ahead` is how many ready jobs of its own repository come first; without it no place
    is looked for. `jobs_of` turns holders of tokens into the jobs they are held for.
    """
    lacks = capacity.lacking(offer.repo, offer.tokens)
    reserved = line.reserved(capacity, now)
    position = None
    if ahead is not None:
        kinds = {lack.token for lack in lacks}
        position = 1 + ahead + line.ahead_of(offer, kinds, now)
    for kind in offer.tokens:
        first = reserved.get(kind)
        if first is not None and line.precedes(first, offer, now):
            detail = f"{kind} is reserved for {first.job}, which waited too long"
            return Waiting(
                "reservation",
                since,
                detail,
                holders=(first.job,),
                position=position,
                resource=kind,
            )
    if not lacks:
        return Waiting("token", since, "it starts next", position=position)
    if not lacks[0].limit and lacks[0].token in capacity.returning:
        detail = f"{noun(lacks[0].token)} are taken one by one after a limit"
        return Waiting("limit", since, detail, position=position)
    pressed = capacity.pressure
    text = "; ".join(describe_lack(lack) for lack in lacks)
    if pressed is not None:
        text = f"the machine is under pressure: {pressed}"
    elif lacks[0].token == WORKERS and capacity.limits.fewer_workers is not None:
        pressed = capacity.limits.fewer_workers
        text += f"; {pressed}"
    if any(first.job == offer.job for first in reserved.values()):
        text += "; it waited so long that what it lacks is kept free for it"
    return Waiting(
        "token" if pressed is None else "pressure",
        since,
        text,
        holders=jobs_of(lacks[0].holders),
        position=position,
        resource=lacks[0].token,
        used=lacks[0].used,
        limit=lacks[0].limit,
    )
