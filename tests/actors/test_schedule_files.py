"""Files of schedules are applied whole, or not at all."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
from msgspec import structs

from forge_actors.actors.schedules_messages import Apply, Put, Tell
from forge_actors.domain import schedule_edits
from forge_actors.domain.changes import Noted
from forge_actors.domain.errors import Refused, StoreFailed
from forge_actors.domain.events import Event
from forge_actors.domain.triggers import Every, Manual
from tests.actors.schedules_kit import World, made

if TYPE_CHECKING:
    from forge_actors.domain.schedules import Definition

pytestmark = pytest.mark.mock_clock
FILE = "/some/file.toml"


def of_file(name: str, seconds: float = 60.0, source: str = FILE) -> Definition:
    return structs.replace(made(name, Every(seconds)), source=source)


async def apply(
    world: World, *definitions: Definition, seen: dict[str, int] | None = None
) -> schedule_edits.Difference:
    make = partial(Apply, FILE, definitions, seen, tuple)
    return await world.mailbox.ask(make)


async def names(world: World) -> list[str]:
    return [schedule.name for schedule in await world.mailbox.ask(Tell)]


async def test_a_file_is_applied_as_a_diff_in_one_commit() -> None:
    world = World()
    async with world.open():
        await world.add("own")
        await apply(world, of_file("a"), of_file("b"), of_file("c"))
        a = await world.now("a")
        before, events = world.store.commits, len(world.store.durable.events)
        told = await apply(world, of_file("a"), of_file("b", 90.0), of_file("d"))
        assert world.store.commits == before + 1
        assert [each.name for each in told.added] == ["d"]
        assert [(of.name, new.trigger) for of, new in told.changed] == [
            ("b", Every(90.0))
        ]
        assert [each.name for each in told.removed] == ["c"]
        assert told.unchanged == (a,)
        kinds = [e.kind for e in world.store.durable.events[events:]]
        assert sorted(kinds) == [
            "schedule_added",
            "schedule_changed",
            "schedule_removed",
        ]
    async with world.open():
        assert await names(world) == ["a", "b", "d", "own"]
        assert (await world.now("b")).revision == 2
        await trio.sleep(61)
        begun = {request.origin for request in world.requests.values()}
        assert begun == {"schedule:a", "schedule:d", "schedule:own"}


async def test_nothing_of_a_file_is_taken_when_one_of_it_cannot_be() -> None:
    async with World().open() as world:
        await world.add("own")
        await apply(world, of_file("a"), of_file("b"))
        before = await world.mailbox.ask(Tell)
        with pytest.raises(Refused, match="'own' is a schedule of the command line"):
            await apply(world, of_file("a", 90.0), of_file("c"), of_file("own"))
        world.store.failure = StoreFailed("the disk is full")
        with pytest.raises(StoreFailed):
            await apply(world, of_file("a", 90.0), of_file("c"))
        assert await world.mailbox.ask(Tell) == before
        await trio.sleep(61)
        assert len(world.requests) == 3


async def test_the_name_of_one_that_goes_can_be_taken_at_once() -> None:
    async with World().open() as world:
        await apply(world, of_file("a"))
        other = of_file("a", source="/other")
        make = partial(Apply, "/other", (other,), None, tuple)
        with pytest.raises(Refused, match=r"of the file /some/file\.toml"):
            await world.mailbox.ask(make)
        await apply(world)
        assert not world.store.durable.schedules
        await world.mailbox.ask(make)
        assert await names(world) == ["a"]


@pytest.mark.parametrize("meanwhile", ["changed", "removed", "added"])
async def test_what_was_not_seen_is_not_written_over(meanwhile: str) -> None:
    async with World().open() as world:
        await apply(world, of_file("a"), of_file("b"))
        seen = {"a": 1, "b": 1}
        match meanwhile:
            case "changed":
                await world.mailbox.ask(partial(Put, made("b", Manual()), 0))
            case "removed":
                await apply(world, of_file("a"))
            case _:
                seen = {"a": 1}
        before = await world.mailbox.ask(Tell)
        with pytest.raises(Refused, match="'b' was changed meanwhile"):
            await apply(world, of_file("a", 90.0), of_file("c"), seen=seen)
        assert await world.mailbox.ask(Tell) == before
        seen = {one.name: one.revision for one in before}
        await apply(world, of_file("c"), seen=seen)
        assert await names(world) == ["c"]


async def test_one_that_submits_just_now_keeps_all_of_them() -> None:
    async with World().open() as world:
        await apply(world, of_file("a"), of_file("b", 1000.0))
        world.takes = 20.0
        await trio.sleep(65)
        with pytest.raises(Refused, match="'a' submits a job just now"):
            await apply(world, of_file("b", 90.0))
        assert (await world.now("b")).revision == 1
        await trio.sleep(20)
        await apply(world, of_file("b", 90.0))
        assert await names(world) == ["b"]


async def test_what_goes_along_is_saved_with_it_or_not_at_all() -> None:
    async with World().open() as world:

        def along() -> tuple[Noted, ...]:
            return (Noted(Event("runtime_ready", 1.0)),)

        before = world.store.commits
        make = partial(Apply, FILE, (of_file("a"),), None, along)
        await world.mailbox.ask(make)
        assert world.store.commits == before + 1
        kinds = [event.kind for event in world.store.durable.events]
        assert kinds[-2:] == ["runtime_ready", "schedule_added"]
        count = len(kinds)
        make = partial(Apply, FILE, (of_file("a"),), {}, along)
        with pytest.raises(Refused, match="meanwhile"):
            await world.mailbox.ask(make)
        assert len(world.store.durable.events) == count


async def test_there_are_no_more_than_a_home_may_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schedule_edits, "MAX_SCHEDULES", 3)
    async with World().open() as world:
        await world.add("own")
        await apply(world, of_file("a"), of_file("b"))
        with pytest.raises(Refused, match="more than 3"):
            await apply(world, of_file("b"), of_file("c"), of_file("d"))
        await apply(world, of_file("c"), of_file("d"))
        assert await names(world) == ["c", "d", "own"]
