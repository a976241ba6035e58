"""A sample of the mutants, drawn by seed from each module, and how sure it makes us."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mutation.mutants import Mutant

#: Of the normal distribution, for an interval that holds in 95 of 100 samples.
Z = 1.959964


def draw(
    modules: Mapping[str, Sequence[Mutant]], size: int, seed: int
) -> dict[str, list[Mutant]]:
    """About `size` of all, a share of each module and at least one where there is one.

    Each module has a generator of its own: a change of one leaves the others' alone.
    A larger sample by the same seed holds the smaller one.
    """
    total = sum(len(mutants) for mutants in modules.values())
    drawn = {}
    for path, mutants in modules.items():
        share = max(1, round(size * len(mutants) / total)) if mutants else 0
        chance = random.Random(f"{seed}:{path}")
        ordered = sorted(mutants, key=lambda one: one.name)
        drawn[path] = chance.sample(ordered, len(ordered))[:share]
    return drawn


@dataclass(frozen=True)
class Share:
    """So many of so many; `low` and `high` bound the share of all, with 95 %.

    By Wilson's score interval (E. B. Wilson, Probable inference, the law of succession,
    and statistical inference, JASA 22, 1927), which stays right near 0 and 1 where
    the textbook's does not (Brown, Cai and DasGupta, Statistical Science 16, 2001).
    """

    some: int
    all: int

    @property
    def part(self) -> float:
        return self.some / self.all if self.all else 0.0

    @property
    def low(self) -> float:
        return self._bounds()[0]

    @property
    def high(self) -> float:
        return self._bounds()[1]

    def _bounds(self) -> tuple[float, float]:
        if not self.all:
            return 0.0, 1.0
        n, p = self.all, self.part
        middle = p + Z * Z / (2 * n)
        reach = Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
        scale = 1 + Z * Z / n
        return max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale)

    def __str__(self) -> str:
        return f"{self.part:.1%} ({self.low:.1%} to {self.high:.1%})"
