"""Schedules while a policy holds them all back: a window waits, and runs once."""

from __future__ import annotations

from functools import partial

import pytest
import trio
import trio.testing

from forge_actors.actors.schedules_messages import HeldNoMore, RunNow
from forge_actors.domain.scheduling import Situation, rule
from forge_actors.domain.triggers import Every, Manual
from tests.actors.schedules_kit import World

pytestmark = pytest.mark.mock_clock
WHY = "the policy is maintenance"
SOON = 1.0


async def end(world: World) -> None:
    world.closed = None
    world.mailbox.tell(HeldNoMore())
    await trio.testing.wait_all_tasks_blocked()


async def test_a_window_is_deferred_and_runs_when_it_is_over() -> None:
    async with World().open() as world:
        await world.add("s", Every(60.0))
        world.closed = WHY
        await trio.sleep(60 + SOON)
        [told] = await world.told()
        assert (told.decision, told.reason) == ("deferred", WHY)
        assert world.requests == {}
        waits = world.timer.waits
        world.mailbox.tell(HeldNoMore())  # another one holds them now
        await trio.testing.wait_all_tasks_blocked()
        assert world.requests == {}
        await end(world)
        assert len(world.requests) == 1
        [told] = await world.told()
        assert told.decision == "run"
        assert world.timer.waits <= waits + 4


async def test_it_is_not_looked_at_again_before_that() -> None:
    async with World().open() as world:
        await world.add("s", Manual())
        world.closed = WHY
        await world.mailbox.ask(partial(RunNow, "s", "wish"))
        await trio.testing.wait_all_tasks_blocked()
        waits = world.timer.waits
        await trio.sleep(86_400.0)
        assert world.timer.waits == waits
        assert world.requests == {}
        await end(world)
        assert len(world.requests) == 1


async def test_one_that_was_deferred_runs_once_after_a_restart() -> None:
    world = World()
    async with world.open():
        await world.add("s", Every(3600.0))
        world.closed = WHY
        await trio.sleep(3600 + SOON)
        assert (await world.told())[0].decision == "deferred"
    world.closed = None
    async with world.open():
        await trio.testing.wait_all_tasks_blocked()
        assert len(world.requests) == 1
        await end(world)
        assert len(world.requests) == 1


async def test_what_is_held_for_longer_than_it_is_caught_up_is_missed() -> None:
    async with World().open() as world:
        schedule = await world.add("s", Every(60.0), catch_up=300.0)
        world.closed = WHY
        await trio.sleep(60 + SOON)
        [entry] = (await world.now()).progress.pending
        late = Situation(entry.due + 1000.0, closed=WHY)
        assert rule(schedule, entry, late).decision == "missed"
