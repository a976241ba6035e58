"""The simulated sampler, and the projections of one simulated service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.actors import projections
from forge_actors.actors.projections_messages import Board
from forge_actors.domain.errors import StoreFailed
from forge_actors.domain.git_status import Sample
from forge_actors.domain.jobs import RESERVED, TERMINAL
from forge_actors.domain.poison import only
from forge_actors.testing.checkouts import FakeSampler, FakeWatch

if TYPE_CHECKING:
    from forge_actors.domain.ports import Clock
    from forge_actors.domain.repositories import Repository
    from forge_actors.testing.simulation.store import SimulatedStore
    from forge_actors.testing.simulation.world import World

#: Seconds between two looks of the safety round: longer than any run.
ROUND_SECONDS = 86_400.0
#: Seconds that samples take, in turn.
TAKES = (0.01, 0.01, 1.5)


class SimulatedSampler(FakeSampler):
    """The port `StatusSampler` of one runtime, over what is there."""

    def __init__(self, world: World) -> None:
        super().__init__(world.statuses)
        self._world = world

    async def sample(self, repository: Repository, limit: float) -> Sample:
        world = self._world
        fault = world.faults.before("sample")
        self.takes = TAKES[len(self.begun) % len(TAKES)]
        sample = await super().sample(repository, limit)
        if fault is not None and fault.kind == "slow":
            await trio.sleep(fault.amount)
        world.faults.after("sample")
        world.note("sample", repository.id)
        if fault is not None and fault.kind == "fail":
            return Sample(sample.cost, problem="simulated: git fails")
        return sample


class SimulatedLooking:
    """The looks of one service, as `runtime.looking` wires them."""

    def __init__(self, world: World, store: SimulatedStore, clock: Clock) -> None:
        self._world = world
        self._store = store
        self._clock = clock
        self.board = Board()
        store.ended_in = self.board.ended

    async def run(self) -> None:
        """Look at repositories, until the service ends or was fenced."""
        world, store = self._world, self._store
        limits = structs.replace(
            world.settings.look_limits(),
            # Each end is to be noticed by itself: not by the next round, nor, in every
            # second run, by the files that its job changed.
            period=ROUND_SECONDS,
            watch=world.plan.seed % 2 == 0,
        )
        context = projections.Context(
            store=store,
            sampler=SimulatedSampler(world),
            watch=FakeWatch(world.statuses),
            clock=self._clock,
            board=self.board,
            limits=lambda: limits,
            repository=self._repository,
            fence=lambda repo: store.durable.repositories[repo].fence,
            active=lambda repo: self._count(repo, running=False),
            running=lambda repo: bool(self._count(repo, running=True)),
            saving=lambda: store.trouble is None,
        )
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(projections.run, context)
        except Exception as error:
            if not only(error, StoreFailed):
                raise

    def _repository(self, repo: str) -> Repository | None:
        known = self._store.durable.repositories.get(repo)
        return None if known is None or known.removed_at is not None else known

    def _count(self, repo: str, *, running: bool) -> int:
        return sum(
            job.repo == repo
            and (job.state in RESERVED if running else job.state not in TERMINAL)
            for job in self._store.durable.jobs.values()
        )
