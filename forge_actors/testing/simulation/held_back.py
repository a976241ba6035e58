"""Which jobs of a plan no person began, and what they declare."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.domain.requests import JobRequest

#: How many of the runs have such jobs, and how many of the jobs of those are some.
SHARE, MANY = 0.4, 0.3


def hold_back(seed: int, jobs: dict[str, JobRequest]) -> None:
    """Let some jobs declare an effect that nobody has allowed."""
    chance = random.Random(f"effects {seed}")  # noqa: S311 - chance, no secret
    if chance.random() >= SHARE:
        return
    for request in jobs.values():
        if chance.random() < MANY:
            request.origin, request.effects = "schedule:nightly", ["push"]
