"""A run that is kept, and whether a later one has lost against it.

Only ratios are compared: each was measured against something of its own run, so they
say something about another day, which times and rates do not.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.bars import COMPARISONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Document = dict[str, Any]
#: The share of a recorded ratio that may be lost.
LOSS = 0.25
#: Our rates, of which the ratio to the C reference counts; those of peers do not.
RATES = ("w1", "w1-deep")
#: Rows that are per cent of what was measured in turn with them; more is better.
SHARES = ("w1-clean", "w1-readers", "w1-all-readers", "status-spin")
GUARDED = frozenset({*SHARES, *(comparison.name for comparison in COMPARISONS)})
LESS_IS_BETTER = frozenset(one.name for one in COMPARISONS if one.less_is_better)
#: What a run must have in common with the recorded one to be compared with it.
SAME = ("quick", "jobs", "cpus")


class Unusable(Exception):
    """A recorded run that nothing can be compared with."""


@dataclass(frozen=True)
class Pair:
    """One ratio, then and now."""

    name: str
    before: float
    now: float
    less_is_better: bool

    @property
    def left(self) -> float:
        """What is left of it: 1 where nothing changed, less where it became worse."""
        good, bad = (
            (self.before, self.now) if self.less_is_better else (self.now, self.before)
        )
        return good / bad if bad else 1.0

    @property
    def lost(self) -> bool:
        return self.left < 1 - LOSS

    def __str__(self) -> str:
        return f"{self.name}: {self.now:.2f}, recorded {self.before:.2f}"


def write(path: Path, document: Document) -> None:
    """Keep a run, with the day of it."""
    kept = {"recorded": time.strftime("%Y-%m-%d", time.gmtime()), **document}
    path.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


def read(path: Path) -> Document:
    """A run that was kept.

    Raises:
        Unusable: the file is not there, or is not one.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise Unusable(f"{path} cannot be read: {error}") from None
    if not isinstance(found, dict) or not {"machine", "rows", "recorded"} <= set(found):
        raise Unusable(f"{path} is no recorded run; --record makes one")
    return found


def check_same(before: Document, now: Document) -> None:
    """Raise Unusable if the ratios of the two runs would be others anyway."""
    for what in SAME:
        if _head(before)[what] != _head(now)[what]:
            raise Unusable(
                f"the recorded run has {what} {_head(before)[what]}, this one"
                f" {_head(now)[what]}:"
                " their ratios cannot be compared; record this one with --record"
            )


def _head(document: Document) -> dict[str, object]:
    return {
        "quick": document.get("quick"),
        "jobs": document.get("jobs"),
        "cpus": document["machine"].get("cpus"),
    }


def compared(before: Document, now: Document) -> list[Pair]:
    """Every ratio that both runs have."""
    then = dict(_ratios(before))
    return [
        Pair(name, then[name], ratio, name in LESS_IS_BETTER)
        for name, ratio in _ratios(now)
        if name in then
    ]


def verdict(pairs: list[Pair]) -> tuple[bool, str]:
    """Whether nothing was lost, and what to say about it."""
    if not pairs:
        return False, "no ratio of this run is in the recorded one: nothing is compared"
    lost = [pair for pair in pairs if pair.lost]
    if not lost:
        return True, f"{len(pairs)} ratios compared, none lost more than {LOSS:.0%}"
    return False, "\n".join(f"LOST {1 - pair.left:.0%} of {pair}" for pair in lost)


def _ratios(document: Document) -> Iterator[tuple[str, float]]:
    for row in document["rows"]:
        name = str(row["name"])
        number = row["ratio_to_cref"] if name in RATES else row["value"]
        if name in (*RATES, *GUARDED) and isinstance(number, int | float):
            yield name, float(number)
