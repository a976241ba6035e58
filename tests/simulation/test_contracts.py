"""The simulated edges keep the contracts that the real ones keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.domain.capacity import RepositoryLimits
from forge_actors.domain.launch import LaunchOrder
from forge_actors.runtime.settings import Settings
from forge_actors.testing import (
    adoption_contract,
    launcher_contract,
    ownership_contract,
    store_contract,
)
from forge_actors.testing.simulation.launcher import SimulatedLauncher
from forge_actors.testing.simulation.machine import Run
from forge_actors.testing.simulation.plan import Plan
from forge_actors.testing.simulation.referee import Referee
from forge_actors.testing.simulation.service import RuntimeClock
from forge_actors.testing.simulation.store import SimulatedStore
from forge_actors.testing.simulation.timers import Timers
from forge_actors.testing.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.changes import Change
    from forge_actors.testing.simulation.machine import Process

RUNS = {
    "true": (Run(0.0),),
    "false": (Run(0.0, exit_code=1),),
    "4711.5": (Run(4711.5),),
    "/no/such/program": (Run(missing=True),),
}
PLAN = Plan(0, False, Settings(), (), {}, RUNS, (), ())
STORE_CHECKS = (*store_contract.CHECKS, *ownership_contract.CHECKS)


class Nobody(Referee):
    """Judges nothing: a contract is no run of a runtime."""

    def saved(self, change: Change, epoch: int) -> None:
        pass

    def began(self, process: Process) -> None:
        pass


def in_a_world(check: Callable[[World], Awaitable[None]]) -> None:
    timers = Timers()

    async def main() -> None:
        with trio.CancelScope() as scope:
            world = World(PLAN, timers, scope=scope)
            world.referee = Nobody(world)
            await check(world)
        assert world.violation is None

    trio.run(main, clock=timers.clock)


def order(*argv: str, job: str = "job", attempt: int = 1) -> LaunchOrder:
    return LaunchOrder(
        job=job,
        repo="repo",
        attempt=attempt,
        fence=attempt,
        argv=argv,
        cwd="/",
        env={"FORGE_REPO_ID": "repo"},
        stdin=None,
        log="/nowhere",
        output_limit=1 << 20,
        wall=None,
        idle=None,
        stop_signal="SIGTERM",
        grace=5.0,
        keep_leftovers=False,
    )


@pytest.mark.parametrize(
    "check", launcher_contract.CHECKS, ids=lambda check: check.__name__
)
def test_the_simulated_launcher_keeps_the_contract(
    check: launcher_contract.Check,
) -> None:
    owner = adoption_contract.owner(1)
    in_a_world(
        lambda world: check(
            lambda: SimulatedLauncher(world, owner, bound=True).open(), order
        )
    )


@pytest.mark.parametrize(
    "check", adoption_contract.CHECKS, ids=lambda check: check.__name__
)
def test_jobs_that_outlive_the_simulated_launcher_are_adopted(
    check: adoption_contract.Check,
) -> None:
    in_a_world(
        lambda world: check(
            lambda owner: SimulatedLauncher(world, owner, bound=False).open(), order
        )
    )


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
def test_the_simulated_store_keeps_the_contract(check: store_contract.Check) -> None:
    limits = RepositoryLimits(4, 1800.0)
    in_a_world(
        lambda world: check(
            lambda: SimulatedStore(world, limits, RuntimeClock(world.clock)).open()
        )
    )
