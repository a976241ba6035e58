"""How a scheduler of the simulation reads the graph: slowly, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.epic.graph import SnapshotRefused

if TYPE_CHECKING:
    from forge_actors.domain.epic.graph import (
        EpicNode,
        RepositoryNode,
        Reread,
        Snapshot,
    )
    from forge_actors.testing.epic.simulation.process import Process
    from forge_actors.testing.epic.simulation.world import World


class SimulatedGraph:
    """The port `Graph` of one scheduler, on the graph that all have."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._graph = world.graph
        self._process = process

    async def repository(self) -> RepositoryNode:
        await self._before("read repository")
        found = await self._graph.repository()
        await self._after("read repository")
        self._process.standalone = self._world.people.standalone(found.place)
        return found

    async def epic(self) -> EpicNode:
        await self._before("read epic")
        found = await self._graph.epic()
        await self._after("read epic")
        return found

    async def snapshot(self) -> Snapshot:
        self._world.referee.reads(self._process)
        await self._before("read snapshot")
        found = await self._graph.snapshot()
        if await self._after("read snapshot") == "change":
            self._world.people.change_one(found)
        self._world.referee.has_read(self._process, found)
        return found

    async def reread(self, snapshot: Snapshot, number: int) -> Reread:
        referee = self._world.referee
        referee.reads_again(self._process, number)
        try:
            await self._before("read reread")
            found = await self._graph.reread(snapshot, number)
            await self._after("read reread")
        finally:
            referee.was_busy(self._process)
            referee.book(self._process).stale = True
        referee.has_read_again(self._process, snapshot, found)
        return found

    async def close(self) -> None:
        raise AssertionError("whoever made it closes it")

    async def _before(self, point: str) -> None:
        """Half of the time that it takes, in which people go on."""
        world, process = self._world, self._process
        kind = process.pass_point(point)
        slow = kind == "slow"
        await process.take(world.plan.slow if slow else world.plan.read / 2)
        if kind == "refuse":
            if point == "read snapshot":
                world.referee.was_refused(process)
            raise SnapshotRefused("unavailable", "the server does not answer")

    async def _after(self, point: str) -> str | None:
        await self._process.take(self._world.plan.read / 2)
        return self._process.pass_point(point, "after")
