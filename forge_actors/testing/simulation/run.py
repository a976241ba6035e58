"""One run of the simulation: from a plan to what did not hold, if anything did not."""

from __future__ import annotations

import gc
import hashlib
import logging
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio
import trio._core._run as trio_run
from msgspec import Struct

from forge_actors.actors import supervisor_messages
from forge_actors.domain.changes import RepositoryAdded
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import RESERVED, State
from forge_actors.domain.repositories import Repository
from forge_actors.domain.scopes import EVERYTHING
from forge_actors.testing.simulation.looks import Looks
from forge_actors.testing.simulation.plan import Operation, Plan, draw
from forge_actors.testing.simulation.policies import NORMAL
from forge_actors.testing.simulation.service import Service
from forge_actors.testing.simulation.timers import Timers
from forge_actors.testing.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.testing.simulation.books import Violation
    from forge_actors.testing.simulation.faults import Fault

#: Seconds that clients have to come to an end by themselves.
CLIENTS_SECONDS = 20.0
#: Seconds in which what was saved of the repositories comes to be true.
STATUS_SECONDS = 60.0
#: Seconds that what was said last may be on its way.
LAST_WORDS = 3.0


class Result(Struct):
    """What one run came to. Without a violation everything held."""

    plan: Plan
    violation: Violation | None
    hits: list[Fault]
    points: list[str]
    pairs: list[tuple[State, State]]
    steps: int
    trace: list[tuple[object, ...]]
    #: What was saved, in order.
    events: list[Event]

    @property
    def digest(self) -> str:
        """A short name of all that happened, in order."""
        text = "\n".join(map(repr, self.trace))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def run(plan: Plan | int) -> Result:
    """Run a plan, or that of a seed."""
    if isinstance(plan, int):
        plan = draw(plan)
    with seeded(plan.seed), _undisturbed():
        simulation = _Simulation(plan)
        return trio.run(simulation.run, clock=simulation.timers.clock)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """A run makes a few megabytes: looking for cycles can wait until it is over. And
    what its supervisors log of actors that fail on purpose is no news."""
    collects, level = gc.isenabled(), logging.root.manager.disable
    gc.disable()
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(level)
        if collects:
            gc.enable()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """While the block lasts, trio's scheduler takes its chances from this seed."""
    before = trio_run._ALLOW_DETERMINISTIC_SCHEDULING
    trio_run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]
    trio_run._r.seed(seed)
    try:
        yield
    finally:
        trio_run._ALLOW_DETERMINISTIC_SCHEDULING = before  # type: ignore[misc]


class _Simulation:
    """The course of one run."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.timers = Timers()

    async def run(self) -> Result:
        scope = trio.CancelScope()
        self._world = world = World(self._plan, self.timers, scope=scope)
        try:
            # Outside of the scope: what fails while it is cancelled counts as well.
            with scope:
                async with trio.open_nursery() as nursery:
                    await self._live(nursery)
                    nursery.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            world.broke(error)
        return Result(
            self._plan,
            world.violation,
            world.faults.hits,
            world.faults.reached,
            list(world.referee.pairs),
            world.referee.steps,
            world.trace,
            world.rows.events,
        )

    async def _live(self, nursery: trio.Nursery) -> None:
        world, plan = self._world, self._plan
        for name in plan.repositories:
            self._add_repository(name)
        nursery.start_soon(self._serve, nursery)
        for operation in plan.operations:
            do = partial(world.clients.do, operation)
            world.timers.after(operation.at, do)
        await trio.sleep(plan.horizon)
        await self._settle()

    def _add_repository(self, name: str) -> None:
        world = self._world
        now = world.clock.now()
        number = len(world.repositories) + 1
        path = f"/{name}"
        added = Repository(
            id=f"repo-{name}",
            name=name,
            path=path,
            common_dir=f"{path}/.git",
            device=1,
            inode=number,
            added_at=now,
        )
        world.repositories[name] = added.id
        world.places.add(added)
        data: dict[str, object] = {"name": name, "path": path}
        event = Event("repository_added", now, added.id, data=data)
        change = RepositoryAdded(added, event)
        world.rows.apply(change)
        world.referee.saved(change, world.epoch)

    async def _serve(self, nursery: trio.Nursery) -> None:
        """One service after the other, or beside one that does not know of it."""
        world = self._world
        while True:
            service = Service(world)
            nursery.start_soon(service.run)
            await service.over.wait()
            await trio.sleep(0.01 + world.random.random() * 0.5)

    async def _settle(self) -> None:
        """Nothing goes wrong any more, and nothing is held: all of it must end."""
        world = self._world
        world.faults.heal()
        world.pressure = None
        with trio.move_on_after(self._plan.patience) as patience:
            with trio.move_on_after(CLIENTS_SECONDS):
                # Some may wait for what only the relief lets happen.
                await world.until(lambda: world.clients.idle)
            for operation in self._relief():
                world.clients.do(operation)
            await world.until(lambda: world.clients.idle)
            world.machine.end_stopped()
            for case in world.books.open_cases:
                verb = "continue" if case.state in RESERVED else "unhold"
                if case.held:
                    await self._do(Operation(0, verb, case.job))
            await world.until(lambda: not world.books.open_cases)
            await world.until(lambda: not world.books.keeps_claims)
            await world.until(lambda: world.clients.idle)
        if patience.cancelled_caught:
            await self._fail_with_reasons()
            return
        await trio.sleep(LAST_WORDS)
        await self._look_for_leaks()
        await self._look_at_statuses()

    async def _look_at_statuses(self) -> None:
        """What was saved of each repository is what is there, whatever came between."""
        world = self._world
        with trio.move_on_after(STATUS_SECONDS):
            await world.until(lambda: not world.unseen)
        if world.unseen:
            world.fail("every end is looked at", f"not known: {world.unseen}")

    async def _fail_with_reasons(self) -> None:
        world = self._world
        left = {c.job: str(c.state) for c in world.books.open_cases}
        if world.service is not None:
            left |= await Looks(world, world.service).reasons()
        text = "; ".join(f"{job}: {why}" for job, why in left.items())
        world.fail(
            "every wait ends",
            f"after {self._plan.patience:.0f} s: {text or 'a client'}",
        )

    def _relief(self) -> list[Operation]:
        scopes = [EVERYTHING, *(f"repo:{name}" for name in self._plan.repositories)]
        accounts = self._world.referee.accounts.accounts
        # One whose account opens by itself is left to do so.
        scopes += [
            f"provider:{name}"
            for name in self._plan.settings.providers
            if (known := accounts.get(name)) is None
            or known.open
            or f"provider:{name}" in self._world.books.pauses
        ]
        relief = [Operation(0, "resume", scope, True) for scope in scopes]
        relief.append(Operation(0, "undrain"))
        relief.append(Operation(0, "policy", "", NORMAL))
        relief += [Operation(0, "enable", name) for name in self._plan.repositories]
        return relief

    async def _do(self, operation: Operation) -> None:
        self._world.clients.do(operation)
        await self._world.until(lambda: self._world.clients.idle)

    async def _look_for_leaks(self) -> None:
        world = self._world
        service = await world.until_served()
        await Looks(world, service).look()
        survey = await service.mailbox.ask(supervisor_messages.Count)
        used = {kind: use.used for kind, use in survey.tokens.items() if use.used}
        if used or survey.active_repositories:
            world.fail("nothing leaks", f"tokens in use at the end: {used}")
        left = [
            process.key
            for process in world.machine.processes.values()
            # A person who removes a repository gives up what is kept for its jobs.
            if process.repo not in world.books.removed
        ]
        if left:
            world.fail("nothing leaks", f"still run: {left}")
        if world.machine.journal:
            world.fail(
                "nothing leaks",
                f"receipts not forgotten: {list(world.machine.journal)}",
            )
        for job in world.referee.acknowledged:
            if job not in world.rows.jobs:
                world.fail("nothing is lost", job)
