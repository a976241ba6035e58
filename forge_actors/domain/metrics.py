"""Metrics: numbers about a runtime for programs that watch it, and how they are named.

Labels have few values that nobody outside chooses: states, kinds and reasons of ours,
and the tokens that the settings name. No job, repository, path or secret is in one.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Literal

from msgspec import Struct, field

Kind = Literal["counter", "gauge", "histogram"]


class Histogram:
    """How many values were at most as large as each bound, and their sum."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        #: Of each bound those above the one before it; then those above all.
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    @property
    def count(self) -> int:
        return sum(self._counts)

    def add(self, value: float) -> None:
        self._counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def up_to(self) -> list[tuple[float, int]]:
        """For each bound how many values were not above it; the last is infinite."""
        total, found = 0, []
        for bound, count in zip(
            (*self.bounds, float("inf")), self._counts, strict=True
        ):
            total += count
            found.append((bound, total))
        return found


class Family(Struct):
    """One metric: its numbers by the values of its labels.

    A counter is named without `_total`, which its form on the wire adds.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    values: dict[tuple[str, ...], float] = field(default_factory=dict)
    histograms: dict[tuple[str, ...], Histogram] = field(default_factory=dict)


def gauge(name: str, help_: str, value: float) -> Family:
    return Family(name, "gauge", help_, values={(): value})


def counter(name: str, help_: str, value: float) -> Family:
    return Family(name, "counter", help_, values={(): value})
