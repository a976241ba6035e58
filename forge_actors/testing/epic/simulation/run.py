"""One run: from a plan to what did not hold, if anything did not."""

from __future__ import annotations

import gc
import hashlib
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio
from msgspec import Struct

from forge_actors.testing.epic.simulation.book import is_ready, left_of
from forge_actors.testing.epic.simulation.plan import Plan, draw
from forge_actors.testing.epic.simulation.process import Process
from forge_actors.testing.epic.simulation.world import World
from forge_actors.testing.simulation.run import seeded
from forge_actors.testing.simulation.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.testing.epic.simulation.points import Fault
    from forge_actors.testing.simulation.books import Violation

#: Seconds of the machine in which a run must be over once people have stopped.
PATIENCE = 1200.0
#: Schedulers that may be needed then until none of them begins anything.
CALM_RUNS = 12


class Result(Struct):
    """What one run came to. Without a violation everything held."""

    plan: Plan
    violation: Violation | None
    hits: list[Fault]
    deeds: set[str]
    trace: list[tuple[float, str]]
    schedulers: int
    workers: int

    @property
    def digest(self) -> str:
        """A short name of all that happened, in order."""
        text = "\n".join(f"{at!r} {what}" for at, what in self.trace)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def run(plan: Plan | int) -> Result:
    """Run a plan, or that of a seed."""
    if isinstance(plan, int):
        plan = draw(plan)
    with seeded(plan.seed), _without_collections():
        simulation = _Simulation(plan)
        return trio.run(simulation.run, clock=simulation.timers.clock)


@contextmanager
def _without_collections() -> Iterator[None]:
    """Looking for cycles can wait until a run is over."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class _Simulation:
    """The course of one run."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.timers = Timers()

    async def run(self) -> Result:
        scope = trio.CancelScope()
        self._world = world = World(self._plan, self.timers, scope)
        try:
            with scope:
                await self._live()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            world.broke(error)
        return Result(
            self._plan,
            world.violation,
            world.injector.hits,
            world.deeds,
            world.trace,
            len(world.processes),
            len(world.workers),
        )

    async def _live(self) -> None:
        world, plan = self._world, self._plan
        world.people.begin()
        for operation in plan.operations:
            world.timers.after(operation.at, partial(world.people.do, operation))
        while world.now < plan.horizon:
            world.people.between()
            await self._run_one(Process(world))
            await trio.sleep(plan.pause)
        await self._rest()

    async def _run_one(self, process: Process) -> None:
        """One scheduler; from the horizon on nothing goes wrong for it."""
        world = self._world
        left = self._plan.horizon - world.now
        calm = self.timers.after(max(0.0, left), self._calm)
        with trio.move_on_after(max(0.0, left) + PATIENCE) as patience:
            await process.run()
        if patience.cancelled_caught:
            world.fail("every run ends", f"{process}")
        calm.cancel()

    def _calm(self) -> None:
        world = self._world
        if not world.calm:
            world.tell("people stop")
            world.calm = True
            world.injector.heal()
            world.people.settle()

    async def _rest(self) -> None:
        """Nothing goes wrong any more: all that is ready is worked on."""
        world = self._world
        self._calm()
        for worker in list(world.workers):
            while worker.alive:
                await trio.sleep(1.0)
        await trio.sleep(70.0)  # whoever has the lock of an issue lets go of it
        for _ in range(CALM_RUNS):
            before = len(world.workers)
            process = Process(world)
            await self._run_one(process)
            if process.outcome != "nothing-admissible":
                world.fail("a run in peace ends by itself", f"{process.outcome}")
            if len(world.workers) == before:
                break
        else:
            world.fail("it comes to rest", f"not within {CALM_RUNS} runs")
        self._look_at_the_end()

    def _look_at_the_end(self) -> None:
        world = self._world
        if world.kernel.held:
            world.fail("no lock is left", f"{list(world.kernel.held)}")
        snapshot = world.referee.book(world.processes[-1]).snapshot
        assert snapshot is not None
        satisfied_by, known = world.plan.satisfied_by, snapshot.ids
        for child in snapshot.home_children:
            issue = child.number
            left = left_of(world.files, issue, snapshot.epic.ref, known[issue])
            begins = is_ready(child, snapshot, satisfied_by)
            if issue == world.processes[-1].standalone or not begins:
                continue
            if left in ("absent", "fresh", "resumable"):
                world.fail("all that is ready is done", f"#{issue} is {left}")
