"""Which runs have many short jobs at once, so that the next ones wait at the agent."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from msgspec import structs

if TYPE_CHECKING:
    from forge_actors.domain.changes import JobRequeued
    from forge_actors.domain.requests import JobRequest
    from forge_actors.runtime.settings import Settings
    from forge_actors.testing.simulation.books import Case
    from forge_actors.testing.simulation.machine import Run
    from forge_actors.testing.simulation.plan import Operation
    from forge_actors.testing.simulation.world import World

#: How many of the runs are so, and how many of the jobs of those are short.
SHARE, MANY = 0.35, 0.95
SECONDS = (0.0002, 0.0005, 0.002, 0.005, 0.02)
#: How many of those claim nothing that another could hold, and wait for no other.
FREE = 0.8
#: How many may wait so: with many of them nobody is left to come before them.
AHEAD = (1, 4, 16)
#: How much closer together than elsewhere they are submitted.
CLOSER = 0.003


def shorten(
    seed: int,
    settings: Settings,
    jobs: dict[str, JobRequest],
    runs: dict[str, tuple[Run, ...]],
    operations: list[Operation],
) -> Settings:
    """Make most jobs of some runs short commands, all submitted at the beginning.

    They have to wait for workers, and for nothing else.
    """
    chance = random.Random(f"quick {seed}")  # noqa: S311 - chance, no secret
    if chance.random() >= SHARE:
        return settings
    for name, request in jobs.items():
        # A more urgent one that is blocked would keep all others from waiting there.
        request.priority = "P2"
        if request.agent is not None or chance.random() >= MANY:
            continue
        if chance.random() < MANY:
            request.kind, request.provider = "repository-command", None
        if not request.claims or chance.random() < FREE:
            request.claims, request.after, request.read_only = [], [], True
        runs[name] = tuple(
            structs.replace(run, seconds=chance.choice(SECONDS)) for run in runs[name]
        )
    operations[:] = [
        structs.replace(each, at=each.at * CLOSER) if each.verb == "submit" else each
        for each in operations
    ]
    limits = structs.replace(
        settings.limits,
        active_repositories=4,
        repository_workers=None,
        ahead=chance.choice(AHEAD),
    )
    return structs.replace(settings, limits=limits)


def withdrawn(world: World, case: Case, change: JobRequeued) -> bool:
    """It was to wait at the agent, and never began: that does not count."""
    return (
        (case.job, case.attempt) not in world.machine.history
        and change.refused == case.refused + 1
        and change.state == "queued"
        and change.error is not None
        and change.queued_at == case.queued_at
    )
