"""Claims that an earlier run left open, of issues that are not to be gone on with."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.actors import epic
from forge_actors.domain.epic.graph import OPEN, BlockerNode
from forge_actors.domain.github.places import IssueAt, Place
from forge_actors.testing.epic.workers import Script
from tests.actors.epic.test_passes import later
from tests.actors.epic.test_starts import run_until_killed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.actors.epic.world import World

pytestmark = pytest.mark.mock_clock

ELSEWHERE = Place("github.com", "octo", "other")
STRANGER = BlockerNode(IssueAt(ELSEWHERE, 5), 5555, OPEN, None)


def move_to_another_repository(world: World) -> None:
    """Its number is there still, in a repository where it means something else."""
    world.graph.remove(1)
    world.graph.add(1, at=IssueAt(ELSEWHERE, 1), id=77)


#: What becomes of issue 1, and what its claim is closed for.
CHANGES: dict[str, tuple[Callable[[World], object], str]] = {
    "closed": (
        lambda world: world.graph.finish(1, "not_planned"),
        "closed:not-planned",
    ),
    "blocked": (
        lambda world: world.graph.block(1, STRANGER),
        "blocked:octo/other#5",
    ),
    "unsupported": (
        lambda world: world.graph.change(1, children=2),
        "unsupported:nested-epic",
    ),
    "removed": (lambda world: world.graph.remove(1), "no child of the EPIC"),
    "elsewhere": (move_to_another_repository, "no child of the EPIC"),
}


async def leave_two(world: World) -> None:
    """A run is killed; issue 1 is left in the middle of the work, 2 with nothing."""
    for issue in (1, 2):
        world.graph.add(issue)
        world.workers.script[issue] = Script(ends=False)
    await run_until_killed(world, lambda: len(world.workers.started) == 2)
    world.workers.of(1).end(0, "review")
    world.workers.of(2).die()


@pytest.mark.parametrize("change", CHANGES)
async def test_it_is_closed_with_the_reason(world: World, change: str) -> None:
    do, why = CHANGES[change]
    await leave_two(world)
    do(world)
    world.workers.script = {}
    assert (await world.run()).status == 0
    [claim] = world.namespace(1).claims
    assert claim.closed is not None
    assert claim.closed.classification == "resumable"
    assert claim.closed.detail == f"found by {world.scheduler.invocation.id}: {why}"
    assert len(world.said("#1: an earlier claim of it is closed")) == 1
    assert world.workers.issues == [1, 2, 2]


async def test_it_is_closed_at_the_next_snapshot_if_somebody_has_it_now(
    world: World,
) -> None:
    await leave_two(world)
    world.graph.finish(1)
    context = world.make()
    foreign = []

    def take() -> None:
        found = world.kernel.take("1", pid=99)
        assert found is not None
        foreign.append((found, found.add()))

    world.graph.after("snapshot", take)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 30.0, lambda: foreign[0][0].close(foreign[0][1]))
        nursery.start_soon(later, 90.0, lambda: world.workers.of(2).end())
        assert (await epic.run(context)).status == 0
    assert world.closings(1) == ["resumable"]
    assert world.said("#1: nobody else works on it any more")


async def test_one_that_is_ready_again_goes_on_and_takes_nothing_over(
    world: World,
) -> None:
    await leave_two(world)
    world.graph.finish(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 30.0, partial(world.graph.reopen, 1))
        nursery.start_soon(later, 90.0, lambda: world.workers.of(1).end())
        nursery.start_soon(later, 90.0, lambda: world.workers.of(2).end())
        assert (await world.run()).status == 0
    first, second = world.namespace(1).claims
    assert (second.kind, second.supersedes) == ("resume", None)
    assert second.state_ref.phase == "review"
    assert [first.closed is None, world.closings(1)] == [
        False,
        ["resumable", "settled"],
    ]


async def test_one_that_is_ready_is_taken_over(world: World) -> None:
    await leave_two(world)
    world.workers.script = {}
    assert (await world.run()).status == 0
    first, second = world.namespace(1).claims
    assert (second.kind, second.supersedes) == ("resume", first.ref)
    assert world.closings(1) == ["superseded", "settled"]
