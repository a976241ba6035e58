"""The simulated maker of worktrees: one of the runtime that runs, over what is there.

What it has begun when its runtime crashes stays as it is, for the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import trio

from forge_actors.domain.errors import WorktreeFailed
from forge_actors.testing.worktrees import FakeWorktrees

if TYPE_CHECKING:
    from forge_actors.domain.worktrees import (
        MadeWorktree,
        Worktree,
        WorktreePlan,
        WorktreeWanted,
    )
    from forge_actors.testing.simulation.world import World


R = TypeVar("R")

#: How many of the worktrees cannot be made, without any fault that is planned.
FAILING = 0.2


class SimulatedWorktrees(FakeWorktrees):
    """The port `Worktrees` of one runtime."""

    def __init__(self, world: World) -> None:
        super().__init__(world.checkouts)
        self._world = world
        self.dead = False

    async def plan(self, wanted: WorktreeWanted) -> WorktreePlan:
        await self._begin("plan")
        plan = await super().plan(wanted)
        return self._end("plan", plan)

    async def make(self, wanted: WorktreeWanted, known: Worktree) -> MadeWorktree:
        await self._begin("make")
        if self._world.random.random() < FAILING:
            raise WorktreeFailed("simulated: git fails")
        made = await super().make(wanted, known)
        return self._end("make", made)

    async def enter(self, wanted: WorktreeWanted, known: Worktree) -> MadeWorktree:
        await self._begin("enter")
        made = await super().enter(wanted, known)
        return self._end("enter", made)

    async def undo(self, wanted: WorktreeWanted, known: Worktree) -> None:
        await self._begin("undo")
        await super().undo(wanted, known)
        self._end("undo", None)

    async def _begin(self, step: str) -> None:
        world = self._world
        fault = world.faults.before(f"worktree {step}")
        if self.dead:
            # It is cancelled when it waits the next time.
            await trio.sleep_forever()
        world.note("worktree", step)
        if fault is not None and fault.kind == "slow":
            await trio.sleep(fault.amount)
        elif fault is not None and fault.kind == "fail":
            raise WorktreeFailed(f"simulated: it cannot {step}")

    def _end(self, step: str, result: R) -> R:
        self._world.faults.after(f"worktree {step}")
        return result
