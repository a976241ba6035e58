"""The beginning of workflows: once a request, and also if nobody waits any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from forge_actors.actors.workflows_messages import Tell
from forge_actors.domain.errors import StoreFailed
from forge_actors.domain.workflow_definitions import Definition
from forge_actors.domain.workflow_steps import Workflow
from tests.actors.workflows_kit import World, named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.changes import Change
    from forge_actors.testing.store_move import Move

pytestmark = pytest.mark.mock_clock

DEFINITION = Definition("release", "portfolio", (named("a"),))


def header(key: str) -> Workflow:
    return Workflow(key, "release", "portfolio", "0", 0.0)


async def test_two_who_ask_for_the_same_at_once_begin_one() -> None:
    begun = []

    async def begin(world: World, key: str) -> None:
        begun.append(await world.workflows.begin(header(key), DEFINITION, "once"))

    async with World().open() as world:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(begin, world, "1")
            nursery.start_soon(begin, world, "2")
        await begin(world, "3")
        assert len(set(begun)) == 1
        assert world.store.active_workflows() == begun[:1]
        await trio.testing.wait_all_tasks_blocked()
        assert world.names() == ["a"]


async def test_what_was_refused_to_one_is_begun_for_the_next() -> None:
    async with World().open() as world:
        world.store.failure = StoreFailed("the disk is full")
        with pytest.raises(StoreFailed):
            await world.workflows.begin(header("1"), DEFINITION, "once")
        assert await world.workflows.begin(header("2"), DEFINITION, "once") == "2"


async def test_one_that_nobody_waits_for_any_more_begins_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with World().open() as world:
        save = world.store.save

        def leave(changes: Sequence[Change], **more: Any) -> Move:
            scope.cancel()
            return save(changes, **more)

        monkeypatch.setattr(world.store, "save", leave)
        with trio.CancelScope() as scope:
            await world.workflows.begin(header("1"), DEFINITION, None)
        assert scope.cancelled_caught
        await trio.testing.wait_all_tasks_blocked()
        assert world.names() == ["a"]
        assert await world.workflows.ask("1", Tell) is not None
