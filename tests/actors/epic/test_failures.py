"""Files and locks that fail in the middle of a run: each costs its own issue only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from forge_actors.domain.epic import places
from forge_actors.domain.epic.errors import StateError
from forge_actors.testing.epic.workers import Script
from tests.actors.epic.test_passes import later

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.actors.epic.world import World

pytestmark = pytest.mark.mock_clock


class Failing:
    """The files of a world, of which some cannot be written."""

    def __init__(self, world: World, fails: Callable[[places.Place], bool]) -> None:
        self._files = world.files
        self._fails = fails
        world.root = self  # type: ignore[assignment]

    def write(self, place: places.Place, content: bytes) -> None:
        self._check(place)
        self._files.write(place, content)

    def create(self, place: places.Place, content: bytes) -> None:
        self._check(place)
        self._files.create(place, content)

    def _check(self, place: places.Place) -> None:
        if self._fails(place):
            raise StateError(f"{places.told(place)}: it may not be written")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


@pytest.mark.parametrize("record", ["binding", "assignment", "claim"])
async def test_without_its_records_no_worker_is_started(
    world: World, record: str
) -> None:
    world.graph.add(1)
    world.graph.add(2)
    of = {
        "binding": places.binding(1),
        "assignment": places.assignment(1),
        "claim": places.claim(1, 1),
    }
    Failing(world, lambda place: place == of[record])
    assert (await world.run()).status == 0
    assert world.workers.issues == [2]
    assert world.said("#1: it is left alone", "may not be written")
    assert world.closings(1) == []
    # Whatever was written, the next run begins it.
    world.root = world.files
    assert (await world.run()).status == 0
    assert world.closings(1) == ["settled"]


async def test_a_worker_that_cannot_be_noted_down_works(world: World) -> None:
    world.graph.add(1)
    Failing(
        world, lambda place: place == places.claim(1, 1) and bool(world.workers.started)
    )
    assert (await world.run()).status == 0
    assert world.said("#1: its process could not be noted down")
    # Nor can its claim be closed, until the next run.
    assert world.said("#1: its claim stays open")
    assert world.closings(1) == [None]
    world.root = world.files
    assert (await world.run()).status == 0
    assert (world.closings(1), world.workers.issues) == (["settled"], [1])


async def test_a_claim_without_a_worker_that_cannot_be_closed_stays_open(
    world: World,
) -> None:
    world.graph.add(1)
    world.graph.add(2)
    world.workers.script[1] = Script(failure="nothing")
    begun: list[places.Place] = []

    def once(place: places.Place) -> bool:
        begun.append(place)
        return place == places.claim(1, 1) and begun.count(place) > 1

    Failing(world, once)
    assert (await world.run()).status == 0
    assert (world.workers.issues, world.closings(1)) == ([2], [None])
    assert world.said("#1: its worker was not started", "its claim stays open")
    assert world.said("#1 is left (uncertain)")


async def test_a_lock_that_breaks_while_a_worker_has_it_leaves_the_claim(
    world: World,
) -> None:
    world.graph.add(1)
    world.graph.add(2)

    def ended() -> None:
        world.locks.problems[1] = "it is a link"
        world.workers.of(1).end()

    world.workers.script[1] = Script(ends=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 5.0, ended)
        end = await world.run()
    assert (end.status, world.closings(1), world.closings(2)) == (
        0,
        [None],
        ["settled"],
    )
    assert world.said("#1: its claim stays open: it is a link")


async def test_what_goes_wrong_with_all_issues_lets_nothing_more_begin(
    world: World,
) -> None:
    world.graph.add(1)
    world.graph.add(2, blocked_by=(1,))
    world.workers.script[1] = Script(ends=False)

    def break_it() -> None:
        world.graph.finish(1)
        world.files.plant((*places.ISSUES, "007"), "a folder of somebody")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 5.0, break_it)
        nursery.start_soon(later, 150.0, lambda: world.workers.of(1).end())
        end = await world.run()
    assert (end.reason, end.status) == ("degraded", 1)
    assert world.scheduler.admission.reason == "epic-not-admissible"
    assert (world.workers.issues, world.closings(1)) == ([1], ["settled"])
    assert len(world.said("nothing can be admitted")) == 1
    summary = world.scheduler.last_snapshot
    assert summary is not None
    assert summary.blocked == 1, "the one before"
