"""The beginning of workflows: once a request, and also if nobody waits any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.actors.workflows_messages import Cancel, Pause, Tell
from forge_actors.domain.errors import RequestTaken, StoreFailed
from forge_actors.domain.workflow_definitions import Definition
from forge_actors.domain.workflow_records import header_of, saved
from forge_actors.domain.workflow_requests import request_id
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


@pytest.mark.parametrize("cancelling", [True, False])
async def test_a_job_that_nobody_came_to_write_down_is_cancelled_too(
    *, cancelling: bool
) -> None:
    """The runtime was killed between the job and the record of it, while somebody
    paused or cancelled the workflow."""
    first = World()
    async with first.open():
        key = await first.begin(named("a"), named("b", "a"))
        await first.workflows.ask(key, Pause)
    first.store.durable.workflow_steps.clear()
    if cancelling:
        _, definition, body = first.store.durable.workflows[key]
        body = saved(structs.replace(header_of(body), state="cancelling")).body
        first.store.durable.workflows[key] = ("cancelling", definition, body)
    async with (second := first.again()).open():
        if not cancelling:
            _, states = await second.now(key)
            assert states == {"a": "running", "b": "waiting"}
            await second.workflows.ask(key, Cancel)
        await second.workflows.wait(key)
        assert second.cancelled == ["job0"]
        assert second.store.durable.workflows[key][0] == "cancelled"


async def test_a_request_that_is_taken_fails_its_step_and_a_retry_has_another() -> None:
    async with World().open() as world:
        world.refusals["a"] = RequestTaken("it belongs to job x, which is gone")
        key = await world.begin(named("a"))
        await world.workflows.wait(key)
        assert world.store.durable.workflows[key][0] == "failed"
        world.refusals.clear()
        await world.workflows.retry(key, [])
        await trio.testing.wait_all_tasks_blocked()
        [made] = world.requests.values()
        assert made.request_id == request_id(key, "a", 2)


async def test_no_step_goes_to_another_repository_of_the_same_name() -> None:
    async with World().open() as world:
        world.removed = {"old"}
        key = await world.begin(named("a", repo="old"), named("b", repo="new"))
        assert world.names() == ["b"]
        _, states = await world.now(key)
        assert states == {"a": "failed", "b": "running"}
