"""Schedules that a repository holds back: looked at again when that may be over."""

from __future__ import annotations

import pytest
import trio

from forge_actors.actors.schedules_messages import Stirred
from forge_actors.domain.schedules import DAY
from forge_actors.domain.triggers import Once
from forge_actors.testing.clock import START
from tests.actors.schedules_kit import World

pytestmark = pytest.mark.mock_clock


async def test_one_that_waits_for_a_clean_checkout_runs_as_soon_as_it_is() -> None:
    async with World().open() as world:
        world.dirty = True
        await world.add(trigger=Once(START + 10), when_clean=True)
        await trio.sleep(15)
        assert world.held == {"repo"}
        world.mailbox.tell(Stirred("other"))
        world.dirty = False
        await trio.sleep(1)
        assert not world.requests
        world.mailbox.tell(Stirred("repo"))
        await trio.sleep(1)
        assert len(world.requests) == 1
        assert world.held == set()


async def test_a_look_is_no_news_to_those_that_wait_for_something_else() -> None:
    async with World().open() as world:
        await world.add(overlap="queue")
        await trio.sleep(130)
        assert [one.decision for one in await world.told()] == ["run", "deferred"]
        assert world.held == set()


async def test_what_is_held_back_for_long_is_not_written_down_each_time() -> None:
    async with World().open() as world:
        world.dirty = True
        await world.add(trigger=Once(START + 10), when_clean=True)
        await trio.sleep(15)
        commits = world.store.commits
        await trio.sleep(3600)
        assert world.store.commits == commits
        assert len(await world.told()) == 1
        world.dirty = None
        await trio.sleep(100)
        assert world.store.commits == commits + 1, "it waits for something else now"
        await trio.sleep(DAY)
        assert [one.decision for one in await world.told()] == ["missed"]


@pytest.mark.parametrize("hindrance", ["approval", "release"])
async def test_it_waits_only_for_what_it_was_told_to(hindrance: str) -> None:
    async with World().open() as world:
        world.hindrances = {hindrance: "it goes on"}  # type: ignore[dict-item]
        await world.add("waits", Once(START + 10), not_while=(hindrance,))
        other = "release" if hindrance == "approval" else "approval"
        await world.add("runs", Once(START + 10), not_while=(other,))
        await trio.sleep(15)
        assert [each.origin for each in world.requests.values()] == ["schedule:runs"]
        [told] = await world.told("waits")
        assert (told.decision, told.reason) == ("deferred", "it goes on")
        world.hindrances = {}
        await trio.sleep(61)
        assert len(world.requests) == 2
