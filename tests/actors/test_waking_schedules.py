"""Schedules whose windows wake a controller in place of submitting a job."""

from __future__ import annotations

from functools import partial

import pytest
import trio
from msgspec import structs

from forge_actors.actors.schedules_messages import HeldNoMore, Put
from forge_actors.domain.continuation import NotNow, NotWoken
from forge_actors.domain.schedules import Policies
from tests.actors.schedules_kit import World, made

pytestmark = pytest.mark.mock_clock


async def add(world: World, **policies: float) -> None:
    definition = made(**policies)
    definition = structs.replace(definition, wake="fixer")
    await world.mailbox.ask(partial(Put, definition, None))


async def test_a_window_wakes_its_controller_and_goes_by_its_job() -> None:
    async with World().open() as world:
        await add(world)
        await trio.sleep(60)
        await trio.testing.wait_all_tasks_blocked()
        assert world.woken == ["fixer"]
        [request] = world.requests.values()
        assert (request.origin, request.argv) == ("schedule:s", ["true"])
        assert (await world.now()).progress.jobs == ("job0",)
        # While its job lives the next one is left out.
        await trio.sleep(61)
        assert [one.decision for one in await world.told()] == ["run", "overlapped"]
        world.end("job0", "failed")
        await trio.testing.wait_all_tasks_blocked()
        assert (await world.now()).progress.failures == 1


async def test_a_host_without_jobs_costs_a_minute_of_the_budget() -> None:
    async with World().open() as world:
        world.without_job = True
        await add(world, daily_budget=120.0)
        await trio.sleep(240)
        await trio.testing.wait_all_tasks_blocked()
        told = await world.told()
        assert [(one.decision, one.job) for one in told[:2]] == [("run", None)] * 2
        progress = (await world.now()).progress
        assert (progress.spent, progress.jobs, progress.runs) == (120.0, (), 2)
        assert len(world.woken) == 2


async def test_a_busy_controller_defers_a_window_until_it_is_free() -> None:
    async with World().open() as world:
        await add(world)
        world.refusal = NotNow("its turn has not ended")
        await trio.sleep(61)
        await trio.testing.wait_all_tasks_blocked()
        [told] = await world.told()
        assert (told.decision, "its turn has not ended" in told.reason) == (
            *("deferred", True),
        )
        # Nothing is tried meanwhile.
        assert len(world.woken) == 1
        world.refusal = None
        world.mailbox.tell(HeldNoMore())
        await world.now()
        await trio.testing.wait_all_tasks_blocked()
        assert [one.decision for one in await world.told()] == ["run"]


async def test_a_wait_is_no_failure_and_a_rejection_is_one() -> None:
    async with World().open() as world:
        policies = Policies(max_failures=3)
        await add(world, max_failures=policies.max_failures)
        world.refusal = NotWoken("nothing is new", failed=False)
        await trio.sleep(61)
        world.refusal = NotWoken("it is done", failed=True)
        await trio.sleep(240)
        decisions = [one.decision for one in await world.told()]
        assert decisions[:4] == ["stopped", "failed", "failed", "failed"]
        assert (await world.now()).state == "paused"
