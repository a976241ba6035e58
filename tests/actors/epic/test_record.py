"""What a run writes of itself, and what it finds of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from forge_actors.domain.epic import places
from forge_actors.domain.epic.graph import SnapshotRefused
from forge_actors.domain.epic.records import MAX_DETAIL
from forge_actors.domain.epic.telling import MAX_LINE
from forge_actors.domain.epic.workers import NotStarted
from forge_actors.testing.epic.graph import ScriptedGraph
from forge_actors.testing.epic.workers import Script
from tests.actors.epic.test_passes import later
from tests.actors.epic.test_starts import SCHEDULER, run_until_killed

if TYPE_CHECKING:
    from forge_actors.domain.epic.workers import WorkerOrder
    from forge_actors.testing.epic.workers import ScriptedWorker
    from tests.actors.epic.world import World

pytestmark = pytest.mark.mock_clock


class Counting:
    """The files of a world; how often the record of the run was written."""

    def __init__(self, world: World) -> None:
        self.writes = 0
        self._files = world.files
        world.root = self  # type: ignore[assignment]

    def write(self, place: places.Place, content: bytes) -> None:
        self.writes += place == SCHEDULER
        self._files.write(place, content)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


async def test_it_is_written_when_there_is_something_new(world: World) -> None:
    files = Counting(world)
    world.graph.add(1)
    world.graph.add(2, blocked_by=(1,))
    world.workers.script[1] = Script(ends=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 150.0, lambda: world.stop("drain"))
        nursery.start_soon(later, 170.0, lambda: world.stop("now"))
        assert (await world.run()).status == 130
    # At the start and at the end, for each snapshot, and once for that nothing begins.
    assert files.writes == 2 + world.graph.count("snapshot") + 1
    assert world.graph.count("snapshot") == 3


async def test_a_run_that_cannot_begin_writes_it_twice(world: World) -> None:
    files = Counting(world)
    world.files.plant((*places.ISSUES, "007"), "a folder of somebody")
    assert (await world.run()).reason == "degraded"
    assert files.writes == 2


async def test_one_that_somebody_removes_is_written_again(world: World) -> None:
    world.graph.add(1)
    world.workers.script[1] = Script(ends=False)
    begun = trio.current_time()
    seen: list[bool] = []

    def look() -> None:
        seen.append(SCHEDULER in world.files.files)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 30.0, lambda: world.files.remove(SCHEDULER), look)
        nursery.start_soon(later, 90.0, look, lambda: world.workers.of(1).end())
        assert (await world.run()).status == 0
    assert trio.current_time() - begun == 90.0
    assert seen == [False, True]
    assert world.scheduler.invocation.end_reason == "nothing-admissible"


async def test_what_another_epic_works_on_is_left_to_it(world: World) -> None:
    ours, world.graph = world.graph, ScriptedGraph(8)
    world.graph.add(1)
    world.workers.script[1] = Script(ends=False)
    await run_until_killed(world, lambda: bool(world.workers.started))
    world.workers.of(1).die()
    kept = {at: data for at, data in world.files.files.items() if "issues" in at}
    world.graph = ours
    world.graph.add(1)
    assert (await world.run()).status == 0
    assert len(world.workers.started) == 1
    assert world.said("#1 is left (other-epic)")
    assert kept.items() <= world.files.files.items()
    assert world.closings(1) == [None]


async def test_a_run_of_its_own_that_cannot_be_read_holds_nothing(
    world: World,
) -> None:
    world.graph.add(1)
    world.files.write(places.STANDALONE, b"{")
    assert (await world.run()).status == 0
    assert world.closings(1) == ["settled"]
    assert len(world.said("run of its own")) == 1


async def test_no_line_and_no_claim_has_a_secret_or_moves_a_cursor(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = f"ghp_{'a' * 36}"
    hostile = f"\x1b[2A {secret} https://me:{'b' * 20}@example.com/ {'long ' * 999}"

    async def start(_order: WorkerOrder) -> ScriptedWorker:
        raise NotStarted(hostile, no_process=True)

    def refuse() -> None:
        world.graph.down = SnapshotRefused("unavailable", hostile)

    monkeypatch.setattr(world.workers, "start", start)
    world.graph.add(1)
    world.graph.add(2)
    world.graph.after("reread", refuse)
    assert (await world.run()).status == 1
    assert world.said("#1: its log cannot be opened: ", "[redacted]")
    assert world.said("#2 could not be read again", "[redacted]")
    assert world.said("the graph could not be read", "[redacted]")
    closed = world.namespace(1).claims[0].closed
    assert closed is not None
    shown = "\n".join([*world.lines, closed.detail])
    assert not [bad for bad in (secret, "b" * 20, "\x1b") if bad in shown]
    assert len(closed.detail) <= MAX_DETAIL
    assert max(map(len, world.lines)) <= MAX_LINE
