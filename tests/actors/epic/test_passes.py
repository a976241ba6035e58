"""Runs of an EPIC from their start to their end: what begins, and when it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.testing.epic.workers import Script

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.testing.epic.workers import ScriptedWorker
    from tests.actors.epic.world import World

pytestmark = pytest.mark.mock_clock


async def later(seconds: float, *then: Callable[[], object]) -> None:
    await trio.sleep(seconds)
    for each in then:
        each()


async def test_nothing_that_is_ready_is_the_end_of_it(world: World) -> None:
    world.graph.add(1, blocked_by=(2,))
    world.graph.add(2, blocked_by=(1,))
    world.graph.add(3, state="closed", reason="completed")
    end = await world.run()
    assert (end.reason, end.status, end.left) == ("nothing-admissible", 0, ())
    assert world.workers.started == []
    assert world.graph.count("snapshot") == 1
    summary = world.scheduler.last_snapshot
    assert summary is not None
    assert (summary.blocked, summary.closed, summary.children) == (2, 1, 3)
    assert world.scheduler.invocation.end_reason == "nothing-admissible"
    assert world.handlers == 0


async def test_a_diamond_is_worked_through_as_people_merge(world: World) -> None:
    graph = world.graph
    graph.add(1)
    graph.add(2, blocked_by=(1,))
    graph.add(3, blocked_by=(1,))
    graph.add(4, blocked_by=(2, 3))
    graph.add(5)
    world.workers.script[5] = Script(ends=False)

    def merged(worker: ScriptedWorker) -> None:
        issue = worker.order.claim.run_key.issue_number
        if issue in (1, 2, 3):
            nursery.start_soon(later, 30.0, lambda: graph.finish(issue))
        if issue == 4:
            nursery.start_soon(later, 1.0, world.workers.of(5).end)

    world.workers.when_started = merged
    async with trio.open_nursery() as nursery:
        end = await world.run()
    assert end.status == 0
    assert world.workers.issues == [1, 5, 2, 3, 4]
    assert [world.closings(issue) for issue in (1, 2, 3, 4, 5)] == [["settled"]] * 5
    # It polls while somebody works, from the end of one reading to the next.
    assert world.graph.count("snapshot") == 3


async def test_never_more_than_the_limit_and_in_the_order_of_people(
    world: World,
) -> None:
    world.limit = 2
    for issue in (1, 2, 3, 4):
        world.graph.add(issue)
        world.workers.script[issue] = Script(ends=False)
    world.graph.order(4, 2, 3, 1)
    most: list[int] = []
    world.passed = lambda: most.append(len(world.workers.alive))
    async with trio.open_nursery() as nursery:
        for number, issue in enumerate((4, 2, 3, 1)):
            nursery.start_soon(
                later, 10.0 + number, lambda issue=issue: world.workers.of(issue).end()
            )
        await world.run()
    assert world.workers.issues == [4, 2, 3, 1]
    assert max(most) == 2


async def test_nothing_is_read_while_there_is_no_slot(world: World) -> None:
    world.limit = 1
    world.graph.add(1)
    world.workers.script[1] = Script(ends=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 10 * world.poll, lambda: world.workers.of(1).end())
        await world.run()
    assert world.graph.count("snapshot") == 2


async def test_a_slow_reading_is_followed_by_a_whole_pause(world: World) -> None:
    world.graph.add(1)
    world.graph.add(2, blocked_by=(1,))
    world.workers.script[1] = Script(ends=False)
    world.graph.seconds = 5.0
    times: list[float] = []
    world.graph.after("snapshot", lambda: times.append(trio.current_time()), nth=None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 150.0, lambda: world.workers.of(1).end())
        begun = trio.current_time()
        await world.run()
    assert [round(each - begun) for each in times] == [15, 80, 145]


async def test_each_issue_has_one_worker_a_run_whatever_that_leaves(
    world: World,
) -> None:
    for issue in (1, 2, 3, 4):
        world.graph.add(issue)
    world.workers.script = {
        1: Script(phase="implement", status=0),
        2: Script(phase=None, status=1),
        3: Script(phase="ready_for_merge", status=-9),
        4: Script(phase="failed", status=1),
    }
    assert (await world.run()).status == 0
    assert sorted(world.workers.issues) == [1, 2, 3, 4]
    closings = [world.closings(issue) for issue in (1, 2, 3, 4)]
    assert closings == [["resumable"], ["abandoned"], ["settled"], ["settled"]]
    status = world.namespace(3).claims[0].closed
    assert status is not None
    assert (status.exit_status, status.settlement) == (-9, "ready_for_merge")
    assert world.said("#1", "left (resumable)")
    logs = [each[: each.index(":")] for each in world.said("its log may say why")]
    assert logs == ["#2"]
    assert world.said("#2", "its log may say why", "workers/1.log")
    # The next one goes on with what can be gone on with.
    world.workers.script = {}
    assert (await world.run()).status == 0
    assert sorted(world.workers.issues[4:]) == [1, 2]
    kinds = [claim.kind for claim in world.namespace(1).claims]
    assert kinds == ["start", "resume"]
    assert world.workers.of(1).order.claim.generation == 2
    assert world.closings(2) == ["abandoned", "settled"]


async def test_an_issue_that_changed_is_not_begun(world: World) -> None:
    world.graph.add(1)
    world.graph.after("snapshot", lambda: world.graph.finish(1))
    assert (await world.run()).status == 0
    assert world.workers.started == []
    assert not world.namespace(1).found
    assert 1 not in world.kernel.made
    assert (world.graph.count("snapshot"), world.graph.count("reread")) == (2, 1)
    assert world.said("#1 has changed", "closed")


async def test_a_graph_that_never_rests_is_read_at_once_three_times_a_turn(
    world: World,
) -> None:
    world.graph.add(1)
    world.graph.add(2)
    flips = iter(range(100))

    def flip() -> None:
        if trio.current_time() - begun < 100:
            world.graph.change(1, reason=f"r{next(flips)}")

    world.graph.after("snapshot", flip, nth=None)
    times: list[float] = []
    world.graph.after("snapshot", lambda: times.append(trio.current_time()), nth=None)
    begun = trio.current_time()
    await world.run()
    assert [round(each - begun) for each in times] == [0, 0, 0, 0, 60, 120]
    assert world.graph.count("reread") == 5 + 2
    assert world.workers.issues == [1, 2]


async def test_who_is_skipped_holds_nobody_up(world: World) -> None:
    world.graph.add(1)
    world.graph.add(2)
    other = world.kernel.take("1", pid=99)
    assert other is not None
    other.add()
    world.kernel.made.add(1)
    assert (await world.run()).status == 0
    assert world.workers.issues == [2]
    assert world.said("#1", "skipped for now")
    assert world.said("#1 is left (owned)")
    # One more look before the end, and no more.
    assert world.graph.count("snapshot") == 2


async def test_who_is_skipped_leaves_its_slot_to_the_next_at_once(
    world: World,
) -> None:
    """One of two slots is taken, and nothing would wake the loop for the other."""
    world.limit = 2
    world.graph.add(1)
    world.workers.script[1] = Script(ends=False)
    other = world.kernel.take("2", pid=99)
    assert other is not None
    other.add()

    def more() -> None:
        world.graph.add(2)
        world.graph.add(3)

    times: list[float] = []
    world.workers.when_started = lambda _worker: times.append(trio.current_time())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 30.0, more)
        nursery.start_soon(later, 100.0, lambda: world.workers.of(1).end())
        await world.run()
    assert world.workers.issues == [1, 3]
    assert times[1] - times[0] == world.poll


async def test_what_others_have_let_go_of_is_begun_at_the_next_snapshot(
    world: World,
) -> None:
    world.graph.add(1)
    world.graph.add(2)
    world.workers.script[2] = Script(ends=False)
    foreign = world.kernel.take("1", pid=99)
    assert foreign is not None
    descriptor = foreign.add()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 30.0, lambda: foreign.close(descriptor))
        nursery.start_soon(later, 90.0, lambda: world.workers.of(2).end())
        await world.run()
    assert world.workers.issues == [2, 1]


async def test_a_worker_that_could_not_be_started_holds_its_issue(
    world: World,
) -> None:
    world.limit = 1
    for issue in (1, 2, 3, 4):
        world.graph.add(issue)
    world.workers.script = {
        1: Script(failure="no-log"),
        2: Script(failure="nothing"),
        3: Script(failure="runs"),
    }
    end = await world.run()
    assert (end.status, world.closings(1), world.closings(2)) == (
        0,
        ["abandoned"],
        ["abandoned"],
    )
    assert world.closings(3) == [None]
    assert world.closings(4) == ["settled"]
    details = [world.namespace(issue).claims[0].closed for issue in (1, 2)]
    assert [each.detail[:15] for each in details if each] == [
        "its log cannot ",
        "its worker was ",
    ]
    assert world.workers.of(3).interrupts == 0
    assert world.said("#3", "something has its lock")


async def test_settled_and_foreign_issues_are_left_as_they_are(world: World) -> None:
    world.graph.add(1)
    await world.run()
    before = dict(world.files.files)
    world.graph.add(2)
    binding = world.namespace(1).binding
    assert binding is not None
    await world.run()
    kept = {place: data for place, data in before.items() if "issues" in place}
    assert kept.items() <= world.files.files.items()
    assert world.workers.issues == [1, 2]
    assert world.said("#1 is left (settled-namespace)")
