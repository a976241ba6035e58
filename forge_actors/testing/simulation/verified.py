"""Which jobs of a plan have agents, whose work is checked in some of them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.jobs import AGENT_KINDS
from forge_actors.testing.simulation.agents import CHECK, NAME
from forge_actors.testing.simulation.machine import Run

if TYPE_CHECKING:
    from random import Random

    from forge_actors.domain.requests import JobRequest

#: How many of the runs have agents, how many of the other jobs of those get one, and
#: how many of all agents are checked.
SHARE, MORE, CHECKED = 0.5, 0.3, 0.8
#: How many attempts of an agent ask something, and how many checks fail, and are alike.
ASKS, FAILS, ALIKE = 0.12, 0.5, 0.4
#: Attempts that a plan knows of a check; later ones do what the last one does.
ATTEMPTS = 8


def give_agents(
    seed: int, jobs: dict[str, JobRequest], runs: dict[str, tuple[Run, ...]]
) -> None:
    """Let some jobs be those of agents, with what their checks do among the runs."""
    chance = random.Random(f"agents {seed}")  # noqa: S311 - chance, no secret
    if chance.random() >= SHARE:
        return
    for name, request in jobs.items():
        plain = request.kind == "repository-command" and chance.random() < MORE
        if request.kind not in AGENT_KINDS and not plain:
            continue
        request.agent, request.prompt = NAME, "Do it."
        *some, last = runs[name]
        asking = [structs.replace(run, asks=chance.random() < ASKS) for run in some]
        # What the last one does is done from then on: it is to come to an end.
        runs[name] = (*asking, last)
        if chance.random() < CHECKED:
            request.verify = f"{CHECK}{name}"
            request.verify_rounds = chance.choice((0, 1, 2, 3))
            request.verify_timeout = chance.choice((2.0, 5.0, 60.0, 60.0))
            runs[request.verify] = tuple(_check(chance) for _ in range(ATTEMPTS))


def _check(chance: Random) -> Run:
    return Run(
        seconds=chance.choice((0.02, 0.1, 0.3, 1.0, 2.5)),
        exit_code=3 if chance.random() < FAILS else 0,
        signal="SIGSEGV" if chance.random() < 0.05 else None,
        obeys=chance.choice((0.0, 0.01, 5.0)),
        hides=chance.random() < 0.1,
        alike=chance.random() < ALIKE,
    )
