"""Issues that cannot be begun now, and that others need not wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.actors import epic
from forge_actors.domain.epic import places
from forge_actors.testing.epic.workers import Script

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
