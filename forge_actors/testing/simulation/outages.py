"""Outages: times in which a provider refuses every job, as a plan has them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.agents import LimitHit
from forge_actors.domain.scopes import provider_in

if TYPE_CHECKING:
    from forge_actors.domain.agents import LimitKind
    from forge_actors.testing.clock import FakeClock

#: How many of the runs have outages, and how many jobs of those have a provider.
SHARE, ASKING = 0.4, 0.6


class Outage(Struct, frozen=True):
    """From a moment on, in seconds from the begin of the run, for so long."""

    provider: str
    begins: float
    seconds: float
    kind: LimitKind
    #: Its end is told.
    stated: bool


def draw_outages(
    seed: int, providers: tuple[str, ...], horizon: float
) -> tuple[Outage, ...]:
    """Those of a seed: most have none."""
    chance = random.Random(f"outages {seed}")  # noqa: S311 - chance, no secret
    if chance.random() >= SHARE:
        return ()
    return tuple(
        Outage(
            chance.choice(providers),
            chance.random() * horizon * 0.6,
            chance.choice((0.5, 2.0, 6.0, 20.0)),
            chance.choice(("usage", "usage", "usage", "rate", "overload", "auth")),
            chance.random() < 0.6,
        )
        for _ in range(chance.randint(1, 4))
    )


class Providers:
    """Who refuses whom at the moment."""

    def __init__(self, outages: tuple[Outage, ...], clock: FakeClock) -> None:
        self._outages = outages
        self._clock = clock
        self._began = clock.now()

    def refusal(self, tokens: tuple[str, ...]) -> LimitHit | None:
        """What a job with these tokens is told that begins now; None: it is served."""
        name, now = provider_in(tokens), self._clock.now() - self._began
        for outage in self._outages:
            end = outage.begins + outage.seconds
            if outage.provider == name and outage.begins <= now < end:
                at = self._clock.wall() + end - now if outage.stated else None
                return LimitHit(outage.kind, "simulated", at)
        return None
