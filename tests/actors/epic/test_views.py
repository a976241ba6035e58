"""What is looked at for views of a run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.actors import epic
from forge_actors.testing.epic.workers import Script
from tests.actors.epic.test_passes import later

if TYPE_CHECKING:
    from forge_actors.domain.epic.namespace import Namespace
    from tests.actors.epic.world import World

pytestmark = pytest.mark.mock_clock


def _end(world: World, issue: int) -> None:
    world.workers.of(issue).end(0, "ready_for_merge")


async def test_an_issue_that_is_left_alone_is_looked_at_once_for_all_views(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for issue in (1, 2):
        world.graph.add(issue)
    world.workers.script = {1: Script(ends=False), 2: Script(ends=False)}
    context, looked = world.make(), []
    look = context.namespaces.look

    def counted(issue: int) -> Namespace:
        looked.append(issue)
        return look(issue)

    states: list[list[str]] = []

    def passed() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(context.namespaces, "look", counted)
            for _ in range(5):
                view = world.view()
                if view is not None:
                    states.append([child.state for child in view.children])

    world.passed = passed
    async with trio.open_nursery() as nursery:
        for issue, seconds in ((1, 1.0), (2, 200.0)):
            end = partial(_end, world, issue)
            nursery.start_soon(later, seconds, end)
        assert (await epic.run(context)).status == 0
    assert ["running", "running"] in states
    assert states[-1][0] == "done"
    # Each time while its worker runs, and once since.
    alone = next(n for n, found in enumerate(states) if found[0] == "done")
    before = sum(found[0] == "running" for found in states[:alone])
    assert looked.count(1) == before + 1
    assert looked.count(2) > looked.count(1)


async def test_a_service_is_told_of_each_issue_that_begins_and_ends(
    world: World,
) -> None:
    world.graph.add(1)
    world.workers.script = {1: Script(ends=False)}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 1.0, partial(_end, world, 1))
        assert (await world.run()).status == 0
    told = [one for one in world.told if one[0] != "epic_snapshot"]
    assert told[:2] == [
        ("epic_issue_started", {"issue": 1, "how": "start", "generation": 1}),
        ("epic_issue_ended", told[1][1]),
    ]
    assert told[1][1].keys() == {"issue", "found", "settlement"}
    assert told[1][1]["issue"] == 1
    snapshot = next(data for kind, data in world.told if kind == "epic_snapshot")
    assert snapshot["children"] == 1
