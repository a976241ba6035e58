"""The runs of many seeds, and what they came to."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.testing.epic.simulation.coverage import Coverage
from forge_actors.testing.epic.simulation.run import run
from forge_actors.testing.simulation.shrinking import Shrinking

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from forge_actors.testing.epic.simulation.points import Fault
    from forge_actors.testing.epic.simulation.run import Result

#: Seeds that one process is given at a time.
_CHUNK = 20
#: Events of a run that are told of a failure, and characters of one.
_LAST, _WIDE = 60, 160


class Brief(Struct):
    """What is kept of a run when there are many."""

    seed: int
    violation: str | None
    hits: list[Fault]
    deeds: set[str]
    schedulers: int
    workers: int


class Simulation:
    """Runs seeds one after the other, and remembers what they reached.

    With `processes` they are spread over so many; the results are the same.
    """

    def __init__(self, *, processes: int = 1) -> None:
        self._processes = processes
        self.coverage = Coverage()
        self.seeds = self.schedulers = self.workers = 0
        #: Seconds that the runs took, of the wall clock.
        self.seconds = 0.0

    def run(self, seeds: Iterable[int]) -> Iterator[Brief]:
        """Run the plans of these seeds; each one's result as it is there, in order."""
        began = time.perf_counter()
        with self._mapped(seeds) as results:
            for brief in results:
                self.seeds += 1
                self.schedulers += brief.schedulers
                self.workers += brief.workers
                self.coverage.add(brief.hits, brief.deeds)
                self.seconds = time.perf_counter() - began
                yield brief

    def minimal(self, seed: int) -> Result:
        """The least run that breaks the same rule as this seed does."""
        found = run(seed)
        if found.violation is None:
            return found
        least: Result = Shrinking(found, run=run).shrink()
        return least

    @contextmanager
    def _mapped(self, seeds: Iterable[int]) -> Iterator[Iterator[Brief]]:
        if self._processes == 1:
            yield map(brief_of, seeds)
            return
        with ProcessPoolExecutor(self._processes) as pool:
            try:
                yield pool.map(brief_of, seeds, chunksize=_CHUNK)
            finally:
                pool.shutdown(cancel_futures=True)


def brief_of(seed: int) -> Brief:
    """Run a seed, and keep of it what many runs are judged by."""
    found = run(seed)
    violation = None if found.violation is None else str(found.violation)
    counts = (found.schedulers, found.workers)
    return Brief(seed, violation, found.hits, found.deeds, *counts)


def describe(result: Result, last: int = _LAST) -> str:
    """A run for people: its plan, and what happened last."""
    plan = result.plan
    limits = (
        f"  at most {plan.limit} at once, a reading each {plan.poll:g} s,"
        f" a grace of {plan.grace:g} s, satisfied by {plan.satisfied_by}"
    )
    heads = (f"seed {plan.seed}: {result.violation or 'everything holds'}", limits)
    children = (f"  {child}" for child in plan.children)
    done = (f"  {operation}" for operation in plan.operations)
    wrong = (f"  fault: {fault}" for fault in plan.faults)
    trace = (f"  {at:9.3f} {what[:_WIDE]}" for at, what in result.trace[-last:])
    return "\n".join(chain(heads, children, done, wrong, trace))
