"""Policies in a run: when somebody sets one, and what must hold while it does."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from forge_actors.actors import supervisor_messages
from forge_actors.domain.policies import Mode, Policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from forge_actors.domain.requests import JobRequest
    from forge_actors.testing.simulation.books import Case
    from forge_actors.testing.simulation.service import Service

#: The works that jobs are of; the first may be the only one.
WORKS = ("w1", "w2")
#: How many runs have policies, and how many of their jobs are of a work.
RULED, OF_WORK = 0.4, 0.5
#: The mode, and after how many seconds it ends by itself.
Wanted = tuple[Mode, float | None]
MODES: tuple[Mode, ...] = ("exclusive", "maintenance", "convergence", "normal")
NORMAL: Wanted = ("normal", None)


def give_works(seed: int, jobs: Iterable[JobRequest]) -> bool:
    """Have jobs be of works; whether this run has policies."""
    chance = random.Random(f"works {seed}")  # noqa: S311 - chance, no secret
    if chance.random() >= RULED:
        return False
    for request in jobs:
        if chance.random() < OF_WORK:
            request.work = chance.choice(WORKS)
    return True


def moments(seed: int, horizon: float) -> Iterator[tuple[float, Wanted]]:
    """When somebody sets which one."""
    chance = random.Random(f"policies {seed}")  # noqa: S311 - chance, no secret
    for _ in range(chance.randint(1, 3)):
        mode = chance.choice(MODES)
        lasts = chance.choice((None, 0.5, 2.0)) if mode != "normal" else None
        yield chance.random() * horizon, (mode, lasts)


async def set_policy(service: Service, wanted: Wanted) -> None:
    """Ask for it, whatever it is now."""
    mode, lasts = wanted
    policy = Policy(
        mode,
        WORKS[0] if mode == "exclusive" else None,
        until=None if lasts is None else service.clock.wall() + lasts,
    )
    await service.mailbox.ask(
        lambda reply: supervisor_messages.SetPolicy(policy, None, False, reply)
    )


def forbids(policy: Policy, case: Case) -> bool:
    """Whether a policy keeps a job from being dispatched."""
    return policy.halts or policy.keeps_out(case.work)
