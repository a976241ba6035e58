"""Schedules that wait for something to come to pass: what is told of it counts once."""

from __future__ import annotations

from functools import partial

import pytest
import trio
from msgspec import structs

from forge_actors.actors.schedules_messages import (
    Pause,
    Put,
    Remove,
    Resume,
    Signalled,
)
from forge_actors.domain.causes import MAX_WATCHED, Branch, Clean, Ended, Jobs
from forge_actors.domain.errors import Refused
from forge_actors.domain.schedules import MAX_SEEN
from forge_actors.domain.triggers import Every, On, Window
from tests.actors.schedules_kit import World, made

pytestmark = pytest.mark.mock_clock
ON_CLEAN = On(Clean())


def window(world: World, key: str, ago: float = 0.0) -> Window:
    return Window(key, world.clock.wall() - ago, f"it was {key}")


async def test_what_is_told_has_one_job_however_often_it_is_told() -> None:
    async with World().open() as world:
        await world.add(trigger=ON_CLEAN)
        for _ in range(2):
            await world.tell(window(world, "a"))
        [told] = await world.told()
        assert (told.decision, told.reason, told.key) == ("run", "it was a", "a")
        world.end("job0")
        await world.tell(window(world, "a"))
        assert len(world.requests) == 1
        await world.tell(window(world, "b"))
        assert len(world.requests) == 2
        assert (await world.now()).progress.number == 2


async def test_what_came_to_nothing_is_not_decided_anew() -> None:
    async with World().open() as world:
        await world.add(trigger=ON_CLEAN, shadow=True)
        for _ in range(2):
            await world.tell(window(world, "a"))
        assert [one.decision for one in await world.told()] == ["would_run"]
        assert world.decided() == ["would_run"]


async def test_how_far_it_was_seen_is_saved_with_the_window() -> None:
    world = World()
    async with world.open():
        await world.add(trigger=ON_CLEAN, cooldown=100.0)
        await world.tell(window(world, "a"), seen="1")
        world.end("job0")
        await trio.sleep(1)
        await world.tell(window(world, "b"), seen="2")
        assert len(world.requests) == 1
    async with world.open():
        [followed] = world.source.followed.values()
        assert followed.progress.seen == "2"
        assert [entry.key for entry in followed.progress.pending] == ["b"]
        await trio.sleep(101)
        assert len(world.requests) == 2
        assert (await world.told())[-1].reason.startswith("it was b")


async def test_a_window_is_not_lost_between_what_was_told_and_its_job() -> None:
    world = World()
    world.takes = 50.0
    async with world.open():
        await world.add(trigger=ON_CLEAN)
        await world.tell(window(world, "a"), seen="1")
        assert not world.requests
    world.takes = 0.0
    async with world.open():
        await trio.sleep(1)
        assert len(world.requests) == 1
        await world.tell(window(world, "a"), seen="1")
        assert len(world.requests) == 1


async def test_of_many_that_come_at_once_the_last_stands_for_all() -> None:
    async with World().open() as world:
        await world.add(trigger=ON_CLEAN)
        many = [window(world, f"{number}") for number in range(3)]
        await world.tell(*many, earlier=40)
        told = {one.decision: one for one in await world.told()}
        assert len(await world.told()) == 4
        assert (told["run"].key, told["missed"].count) == ("2", 40)
        assert len(world.requests) == 1


async def test_all_of_them_run_where_the_policy_says_so() -> None:
    async with World().open() as world:
        await world.add(trigger=ON_CLEAN, misfire="all", overlap="queue")
        await world.tell(*(window(world, f"{n}", ago=3.0 - n) for n in range(3)))
        for number in range(3):
            assert len(world.requests) == number + 1
            world.end(f"job{number}")
            await trio.sleep(1)
        assert [one.key for one in await world.told()] == ["0", "1", "2"]


async def test_what_came_while_nobody_was_there_goes_by_misfire() -> None:
    async with World().open() as world:
        await world.add("skips", ON_CLEAN, misfire="skip")
        await world.add("once", ON_CLEAN)
        for name in ("skips", "once"):
            await world.tell(window(world, "a", ago=600.0), name=name)
        await trio.sleep(61)
        assert [one.decision for one in await world.told("skips")] == ["missed"]
        [told] = await world.told("once")
        assert (told.decision, "it was a; it is" in told.reason) == ("run", True)


async def test_two_starts_are_no_closer_than_was_said() -> None:
    async with World().open() as world:
        await world.add(trigger=On(Clean(), least=300.0))
        await world.tell(window(world, "a"))
        world.end("job0")
        await trio.sleep(100)
        await world.tell(window(world, "b"))
        assert [one.decision for one in await world.told()] == ["run", "deferred"]
        await trio.sleep(201)
        assert len(world.requests) == 2


async def test_only_what_waits_is_followed() -> None:
    async with World().open() as world:
        await world.add("timed", Every(60.0))
        added = await world.add(trigger=ON_CLEAN)
        assert list(world.source.followed) == [added.id]
        await world.mailbox.ask(partial(Pause, "s", "why"))
        assert not world.source.followed
        await world.mailbox.ask(partial(Resume, "s", baseline="now"))
        [followed] = world.source.followed.values()
        assert (followed.progress.seen, followed.progress.begun) == ("now", 1)
        branch = made(trigger=On(Branch("main")))
        await world.mailbox.ask(partial(Put, branch, 0, baseline="there"))
        [followed] = world.source.followed.values()
        assert (followed.progress.seen, followed.progress.begun) == ("there", 2)
        known = await world.mailbox.ask(partial(Put, branch, 0, baseline="other"))
        assert known.progress.seen == "there", "it is the same cause"
        moved = structs.replace(branch, repo="elsewhere")
        known = await world.mailbox.ask(partial(Put, moved, 0, baseline="new"))
        assert (known.progress.seen, known.progress.begun) == ("new", 3)
        await world.mailbox.ask(partial(Put, made(), 0))
        assert not world.source.followed
        await world.mailbox.ask(partial(Put, made(trigger=ON_CLEAN), 0))
        assert world.source.followed
        await world.mailbox.ask(partial(Remove, "s"))
        assert not world.source.followed


async def test_what_was_told_of_before_a_change_does_not_count() -> None:
    async with World().open() as world:
        await world.add(trigger=ON_CLEAN)
        await world.mailbox.ask(partial(Put, made(trigger=On(Branch("x"))), 0))
        await world.tell(window(world, "a"), begun=0)
        await world.mailbox.ask(partial(Pause, "s", "why"))
        await world.tell(window(world, "b"))
        assert not await world.told()
        world.mailbox.tell(Signalled("unknown", 0, None))
        assert (await world.now()).progress.seen is None


async def test_one_that_is_told_too_much_is_set_aside() -> None:
    async with World().open() as world:
        await world.add(trigger=ON_CLEAN)
        await world.tell(seen="x" * MAX_SEEN)
        assert (await world.now()).state == "active"
        await world.tell(seen="x" * (MAX_SEEN + 1))
        assert (await world.now()).state == "quarantined"
        assert not world.source.followed


async def test_a_repository_that_went_meanwhile_takes_its_schedules() -> None:
    world = World()
    async with world.open():
        await world.add(trigger=ON_CLEAN)
        await world.add("timed")
    world.removed.add("repo")
    async with world.open():
        assert world.store.schedules() == []
        assert not world.source.followed


async def test_the_checkouts_that_are_watched_are_bounded() -> None:
    async with World().open() as world:
        for number in range(MAX_WATCHED):
            definition = structs.replace(
                made(f"s{number}", ON_CLEAN), repo=f"r{number}"
            )
            await world.mailbox.ask(partial(Put, definition, None))
        one_more = structs.replace(made("more", ON_CLEAN), repo="more")
        with pytest.raises(Refused, match="are the most"):
            await world.mailbox.ask(partial(Put, one_more, None))
        same = structs.replace(made("same", On(Branch("x"))), repo="r1")
        await world.mailbox.ask(partial(Put, same, None))
        of_jobs = structs.replace(one_more, trigger=On(Ended(Jobs("any"))))
        await world.mailbox.ask(partial(Put, of_jobs, None))
