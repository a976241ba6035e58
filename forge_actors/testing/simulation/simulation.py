"""A simulation: the runs of many seeds, and what they came to."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.testing.simulation.coverage import Coverage
from forge_actors.testing.simulation.plan import draw
from forge_actors.testing.simulation.run import run
from forge_actors.testing.simulation.shrinking import Shrinking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from forge_actors.domain.jobs import State
    from forge_actors.testing.simulation.faults import Fault
    from forge_actors.testing.simulation.plan import Plan
    from forge_actors.testing.simulation.run import Result

#: Seeds that one process is given at a time.
_CHUNK = 10


class Brief(Struct):
    """What is kept of a run when there are many."""

    seed: int
    violation: str | None
    steps: int
    hits: list[Fault]
    pairs: list[tuple[State, State]]


class Simulation:
    """Runs seeds one after the other, and remembers what they reached.

    With `processes` they are spread over so many; the results are the same.
    """

    def __init__(
        self, *, processes: int = 1, draw: Callable[[int], Plan] = draw
    ) -> None:
        self._processes = processes
        self._brief_of = partial(brief_of, draw=draw)
        self._draw = draw
        self.coverage = Coverage()
        self.seeds = 0
        self.steps = 0
        #: Seconds that the runs took, of the wall clock.
        self.seconds = 0.0

    def run(self, seeds: Iterable[int]) -> Iterator[Brief]:
        """Run the plans of these seeds; each one's result as it is there, in order."""
        began = time.perf_counter()
        with self._mapped(seeds) as results:
            for brief in results:
                self.seeds += 1
                self.steps += brief.steps
                self.coverage.add(brief.hits, brief.pairs)
                self.seconds = time.perf_counter() - began
                yield brief

    def minimal(self, seed: int) -> Result:
        """The least run that breaks the same rule as this seed does."""
        found = run(self._draw(seed))
        return Shrinking(found).shrink() if found.violation else found

    @contextmanager
    def _mapped(self, seeds: Iterable[int]) -> Iterator[Iterator[Brief]]:
        if self._processes == 1:
            yield map(self._brief_of, seeds)
            return
        with ProcessPoolExecutor(self._processes) as pool:
            try:
                yield pool.map(self._brief_of, seeds, chunksize=_CHUNK)
            finally:
                pool.shutdown(cancel_futures=True)


def brief_of(seed: int, draw: Callable[[int], Plan] = draw) -> Brief:
    """Run a seed, and keep of it what many runs are judged by."""
    result = run(draw(seed))
    violation = None if result.violation is None else str(result.violation)
    return Brief(seed, violation, result.steps, result.hits, result.pairs)


def describe(result: Result) -> str:
    """A run for people: its plan, and everything that happened."""
    plan = result.plan
    heads = (
        f"seed {plan.seed}: {result.violation or 'everything holds'}",
        f"  {'bound' if plan.bound else 'durable'} agent, {plan.settings.limits}",
    )
    done = (f"  {operation}" for operation in plan.operations)
    wrong = (f"  fault: {fault}" for fault in plan.faults)
    trace = (
        f"  {at:9.4f} {' '.join(str(part)[:160] for part in what)}"
        for at, *what in result.trace
    )
    return "\n".join(chain(heads, done, wrong, trace))
