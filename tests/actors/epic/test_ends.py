"""Requests to stop, signals and refusals: what a run does then, and how it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.lowlevel

from forge_actors.actors import epic
from forge_actors.domain.epic import places
from forge_actors.domain.epic.errors import StateError
from forge_actors.testing.epic.workers import Script
from tests.actors.epic.test_passes import later
from tests.actors.epic.world import EPIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.epic.workers import WorkerOrder
    from forge_actors.testing.epic.workers import ScriptedWorker
    from tests.actors.epic.world import World

pytestmark = pytest.mark.mock_clock

STOP = places.stop(EPIC)


def admission(world: World) -> tuple[str, str | None, str | None]:
    record = world.scheduler
    return (
        record.admission.status,
        record.admission.reason,
        record.invocation.end_reason,
    )


#: What happens, each at a second of its own, and the admission, the reason and status.
ENDS: dict[str, tuple[str, str, str | None, str, int]] = {
    "drain": ("d", "closed", "stop-requested", "drained", 0),
    "now": ("n", "closed", "stop-requested", "stopped", 130),
    "signal": ("s", "closed", "interrupted", "interrupted", 130),
    "drain, now": ("dn", "closed", "stop-requested", "stopped", 130),
    "drain, signal": ("ds", "closed", "stop-requested", "interrupted", 130),
    "now, signal": ("ns", "closed", "stop-requested", "stopped", 130),
    "signal, now": ("sn", "closed", "interrupted", "interrupted", 130),
    "both in one": ("b", "closed", "interrupted", "interrupted", 130),
    "refused": ("r", "degraded", "snapshot-refused", "degraded", 1),
    "refused, drain": ("rd", "degraded", "snapshot-refused", "degraded", 1),
    "refused, now": ("rn", "degraded", "snapshot-refused", "stopped", 130),
    "refused, signal": ("rs", "degraded", "snapshot-refused", "interrupted", 130),
}


@pytest.mark.parametrize("case", ENDS)
async def test_how_it_ends(world: World, case: str) -> None:
    steps, status, why, reason, code = ENDS[case]
    world.graph.add(1)
    world.graph.add(2, blocked_by=(1,))
    world.workers.script[1] = Script(ends=False)
    world.poll = 10.0
    acts: dict[str, Callable[[], Any]] = {
        "d": lambda: world.stop("drain"),
        "n": lambda: world.stop("now"),
        "s": world.signal,
        "r": lambda: None,
        "b": lambda: (world.stop("now"), world.signal()),
    }
    if steps[0] == "r":
        world.graph.after("snapshot", lambda: world.graph.fail("snapshot"))
    ends_by_itself = not set(steps) & set("snb")
    async with trio.open_nursery() as nursery:
        for number, step in enumerate(steps):
            nursery.start_soon(later, 15.0 + number, acts[step])
        if ends_by_itself:
            nursery.start_soon(later, 60.0, lambda: world.workers.of(1).end())
        end = await world.run()
    assert (end.reason, end.status) == (reason, code)
    assert admission(world) == (status, why, reason)
    assert world.workers.issues == [1]


async def test_workers_that_save_when_interrupted_end_before_the_grace(
    world: World,
) -> None:
    for issue in (1, 2):
        world.graph.add(issue)
        world.workers.script[issue] = Script(ends=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 5.0, world.signal)
        begun = trio.current_time()
        end = await world.run()
    assert trio.current_time() - begun < 5.5
    assert (end.status, end.left) == (130, ())
    assert [world.closings(issue) for issue in (1, 2)] == [["resumable"]] * 2
    assert [world.workers.of(issue).interrupts for issue in (1, 2)] == [1, 1]


async def test_a_worker_that_ignores_it_is_left_alone_after_the_grace(
    world: World,
) -> None:
    world.graph.add(1)
    world.workers.script[1] = Script(ends=False, obeys=99)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 5.0, lambda: world.stop("now"))
        begun = trio.current_time()
        end = await world.run()
    assert 35 <= trio.current_time() - begun < 35.3
    worker = world.workers.of(1)
    assert (worker.interrupts, worker.alive, end.left) == (2, True, (1,))
    assert world.said("workers go on with #1")
    assert "controller" in world.kernel.held
    # It has the repository for as long as it lives; then the next run goes on.
    with pytest.raises(Exception, match="has it"):
        await world.run()
    worker.end()
    assert (await world.run()).status == 0
    assert world.closings(1) == ["settled"]


async def test_two_signals_at_once_are_two_steps(world: World) -> None:
    world.graph.add(1)
    world.workers.script[1] = Script(ends=False, obeys=2)
    passes: list[int] = []
    world.passed = lambda: passes.append(
        world.workers.of(1).interrupts if world.workers.started else 0
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 5.0, world.signal, world.signal)
        end = await world.run()
    assert end.status == 130
    assert passes[-1] == 1
    assert world.workers.of(1).interrupts == 2


async def test_a_grace_of_nothing_is_over_at_once(world: World) -> None:
    world.grace = 0.0
    world.graph.add(1)
    world.workers.script[1] = Script(ends=False, obeys=99)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 5.0, world.signal)
        begun = trio.current_time()
        await world.run()
    assert trio.current_time() - begun < 5.3
    assert world.workers.of(1).interrupts == 2


async def test_a_request_for_another_run_is_removed(world: World) -> None:
    world.graph.add(1)
    world.workers.script[1] = Script(ends=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 5.0, lambda: world.stop("now", "i-0000000000"))
        nursery.start_soon(later, 20.0, lambda: world.workers.of(1).end())
        end = await world.run()
    assert (end.status, STOP in world.files.files) == (0, False)
    assert len(world.said("does not count")) == 1


async def test_what_is_no_request_is_a_drain_and_said_once(world: World) -> None:
    world.graph.add(1)
    world.graph.add(2, blocked_by=(1,))
    world.workers.script[1] = Script(ends=False)

    def plant() -> None:
        world.files.plant(STOP, "a FIFO")
        world.context.bell.ring()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 5.0, plant)
        nursery.start_soon(later, 20.0, lambda: world.workers.of(1).end())
        end = await world.run()
    assert (end.reason, end.status) == ("drained", 0)
    assert len(world.said("asked to stop")) == 1
    assert world.workers.of(1).interrupts == 0


async def test_its_own_request_stays_and_the_next_start_removes_it(
    world: World,
) -> None:
    world.graph.add(1)
    world.workers.when_started = lambda _worker: world.stop("drain")
    assert (await world.run()).reason == "drained"
    assert STOP in world.files.files
    assert (await world.run()).reason == "nothing-admissible"
    assert STOP not in world.files.files
    assert world.said("an old request to stop was removed")


async def test_a_signal_cuts_a_reading_short(world: World) -> None:
    world.graph.add(1)
    world.graph.seconds = 20.0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 50.0, world.signal)
        begun = trio.current_time()
        end = await world.run()
    assert (end.status, trio.current_time() - begun) == (130, 50.0)
    assert world.graph.reads == ["repository", "epic", "snapshot"]


async def test_a_signal_that_comes_while_the_last_issue_begins_counts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker cannot be started, so that nothing is left when that is known."""
    world.graph.add(1)
    world.workers.script[1] = Script(failure="nothing")
    start = world.workers.start

    async def slowly(order: WorkerOrder) -> ScriptedWorker:
        await trio.sleep(5.0)
        return await start(order)

    monkeypatch.setattr(world.workers, "start", slowly)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 2.0, world.signal)
        end = await world.run()
    assert (end.reason, end.status) == ("interrupted", 130)
    assert world.closings(1) == ["abandoned"]


async def test_a_request_cuts_short_that_an_issue_is_read_again(world: World) -> None:
    world.graph.add(1)
    world.graph.after("snapshot", lambda: setattr(world.graph, "seconds", 20.0))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 5.0, lambda: world.stop("drain"))
        begun = trio.current_time()
        end = await world.run()
    assert (end.reason, trio.current_time() - begun) == ("drained", 5.0)
    assert world.workers.started == []


async def test_who_still_has_the_lock_delays_the_end_and_is_told_of_once(
    world: World,
) -> None:
    world.limit = 1
    world.graph.add(1)
    world.graph.add(2)
    world.workers.script[1] = Script(leaks=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 60.0, lambda: world.workers.of(1).let_go())
        end = await world.run()
    assert (end.status, world.closings(1)) == (0, ["settled"])
    # Its slot was free all the while.
    assert world.workers.issues == [1, 2]
    assert len(world.said("#1", "still has its lock")) == 1


async def test_that_nothing_can_be_written_stops_no_run(world: World) -> None:
    world.graph.add(1)

    class Full:
        """Refuses the record of the run once it is there."""

        def write(self, place: places.Place, content: bytes) -> None:
            if place == places.scheduler(EPIC) and place in world.files.files:
                raise StateError("there is no room left")
            world.files.write(place, content)

        def __getattr__(self, name: str) -> Any:
            return getattr(world.files, name)

    world.root = Full()  # type: ignore[assignment]
    end = await world.run()
    assert (end.status, world.closings(1)) == (0, ["settled"])
    assert world.scheduler.invocation.ended_at is None
    assert world.said("could not be written")


async def test_an_unexpected_failure_records_no_end_and_lets_workers_live(
    world: World,
) -> None:
    world.graph.add(1)
    world.workers.script[1] = Script(ends=False)

    def fail() -> None:
        if world.workers.started:
            raise RuntimeError("a bug")

    world.passed = fail
    with pytest.RaisesGroup(RuntimeError):
        await world.run()
    assert world.scheduler.invocation.ended_at is None
    assert (world.handlers, world.workers.alive) == (0, [1])
    assert world.kernel.unlocked == []
    world.workers.of(1).die()
    world.passed = lambda: None
    world.workers.script = {}
    assert (await world.run()).status == 0
    assert world.closings(1) == ["abandoned", "settled"]


async def test_a_terminal_that_is_gone_changes_nothing(world: World) -> None:
    world.graph.add(1)

    def gone(_line: str) -> None:
        raise OSError(5, "Input/output error")

    context = world.make()
    context.out = gone
    end = await epic.run(context)
    assert (end.status, world.closings(1)) == (0, ["settled"])
