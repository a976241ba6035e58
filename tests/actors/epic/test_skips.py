"""Issues that cannot be begun now, and that others need not wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.actors import epic
from forge_actors.domain.epic import places
from forge_actors.testing.epic.workers import Script
from tests.actors.epic.test_passes import later
from tests.actors.epic.test_starts import run_until_killed
from tests.actors.epic.world import EPIC

if TYPE_CHECKING:
    from tests.actors.epic.world import World

pytestmark = pytest.mark.mock_clock


async def test_the_only_slot_goes_to_the_next_one_at_once(world: World) -> None:
    world.limit = 1
    for issue in (1, 2, 3, 4):
        world.graph.add(issue)
    world.files.write(places.run_lock(1), b"")
    foreign = world.kernel.take("1", pid=99)
    assert foreign is not None
    foreign.add()
    context = world.make()
    world.locks.problems[2] = "it is a folder"
    world.workers.script[3] = Script(failure="no-log")
    begun = trio.current_time()
    end = await epic.run(context)
    assert (end.status, world.workers.issues) == (0, [4])
    assert trio.current_time() == begun
    assert world.said("#1 is left (owned)")
    assert world.said("#2 is left (uncertain)")
    # One more look for the one that somebody has, and no more.
    assert world.graph.count("snapshot") == 2


async def test_what_is_in_the_place_of_a_request_is_no_failure(world: World) -> None:
    world.graph.add(1)
    world.files.write((*places.stop(EPIC), "a file of somebody"), b"")
    end = await world.run()
    assert (end.reason, world.workers.started) == ("drained", [])
    assert world.said("cannot be removed")
    assert world.said("asked to stop (drain)", "stop.json")
    assert world.scheduler.invocation.ended_at is not None


async def test_an_issue_that_is_not_told_in_time_is_read_again(world: World) -> None:
    world.graph.add(1)
    slow = iter([100.0, 0.0])
    world.graph.after(
        "snapshot", lambda: setattr(world.graph, "seconds", next(slow)), nth=None
    )
    begun = trio.current_time()
    assert (await world.run()).status == 0
    assert world.said("#1 could not be read again", "30 s")
    assert world.workers.issues == [1]
    assert trio.current_time() - begun == 30 + 100


async def test_an_earlier_claim_that_cannot_be_closed_is_told_of_once(
    world: World,
) -> None:
    world.graph.add(1)
    world.graph.add(2)
    world.workers.script = {1: Script(ends=False), 2: Script(ends=False)}
    await run_until_killed(world, lambda: len(world.workers.started) == 2)
    world.workers.of(1).end(0, "review")
    world.workers.of(2).die()
    world.graph.finish(1)
    context = world.make()

    def break_it() -> None:
        world.locks.problems[1] = "it is a link"

    world.graph.after("snapshot", break_it)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 150.0, lambda: world.workers.of(2).end())
        assert (await epic.run(context)).status == 0
    assert len(world.said("#1", "earlier claim stays open", "a link")) == 1
    assert world.closings(1) == [None]
    assert world.graph.count("snapshot") > 2
