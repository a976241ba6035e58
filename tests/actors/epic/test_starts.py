"""The start of a run: what is refused with nothing written, and what goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from forge_actors.actors import epic
from forge_actors.domain.epic import places
from forge_actors.domain.epic.errors import LockHeld, UnsupportedFilesystem
from forge_actors.domain.epic.records import EngineState, RunKey, encode
from forge_actors.domain.timestamps import timestamp
from forge_actors.testing.epic.workers import MOMENT, NO_DIGEST, Script
from tests.actors.epic.world import EPIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.epic.records import EpicRef
    from tests.actors.epic.world import World

pytestmark = pytest.mark.mock_clock

SCHEDULER = places.scheduler(EPIC)


class Killed(BaseException):
    """In place of the signal that nothing survives."""


async def run_until_killed(world: World, when: Callable[[], bool]) -> None:
    """Run a scheduler that is killed after the first pass in which this is so."""

    def kill() -> None:
        if when():
            world.kill()
            raise Killed

    world.passed = kill
    with pytest.RaisesGroup(Killed):
        await world.run()
    world.passed = lambda: None


async def test_nobody_starts_beside_another(world: World) -> None:
    world.kernel.take("controller", pid=99)
    with pytest.raises(LockHeld):
        await world.run()
    assert (world.graph.reads, world.files.files) == ([], {})


async def test_a_file_system_without_locks_is_refused(world: World) -> None:
    context = world.make()
    world.locks.refusal = UnsupportedFilesystem("nfs")
    with pytest.raises(UnsupportedFilesystem):
        await epic.run(context)
    assert (world.graph.reads, world.files.files) == ([], {})


@pytest.mark.parametrize("read", ["repository", "epic"])
async def test_a_graph_that_cannot_be_read_is_a_refusal(
    world: World, read: str
) -> None:
    world.graph.fail(read, "rate-limited", wait=120.0)  # type: ignore[arg-type]
    end = await world.run()
    assert (end.reason, end.status, end.wait) == (None, 1, 120.0)
    assert world.files.files == {}
    until = timestamp(world.clock.wall() + 120)
    assert world.said("rate-limited", f"after {until} (in 120 s)")
    assert world.kernel.held == {}


async def test_a_broken_record_is_left_as_it_is(world: World) -> None:
    world.files.write(SCHEDULER, b"{")
    end = await world.run()
    assert (end.reason, end.status) == (None, 1)
    assert world.files.files == {SCHEDULER: b"{"}
    assert world.said("--force")

    def move_aside(epic: EpicRef) -> None:
        assert "controller" in world.kernel.held
        world.records.move_scheduler_aside(epic.number, MOMENT)

    world.before_start = move_aside
    assert (await world.run()).status == 0
    aside = [place for place in world.files.files if place[-1] > "scheduler.json"]
    assert [world.files.files[place] for place in aside] == [b"{"]
    assert world.scheduler.invocation.end_reason == "nothing-admissible"


async def test_a_record_of_another_repository_is_left_as_it_is(world: World) -> None:
    await world.run()
    before = world.files.files[SCHEDULER]
    world.graph.home = structs.replace(world.graph.home, id=555)
    end = await world.run()
    assert (end.reason, world.files.files[SCHEDULER]) == (None, before)
    assert world.said("101", "555")


async def test_what_the_callers_check_refuses_writes_nothing(world: World) -> None:
    def refuse(_epic: EpicRef) -> None:
        raise ValueError("there are open claims")

    world.before_start = refuse
    with pytest.raises(ValueError, match="open claims"):
        await world.run()
    assert (world.files.files, world.kernel.held) == ({}, {})


async def test_the_record_keeps_when_it_was_made_and_nothing_else(
    world: World,
) -> None:
    await world.run()
    first = world.scheduler
    world.clock.shift(100)
    await world.run()
    second = world.scheduler
    assert second.created_at == first.created_at
    assert second.invocation.started_at > first.invocation.started_at
    assert second.invocation.id != first.invocation.id


async def test_something_that_is_no_issue_keeps_everything_back(world: World) -> None:
    world.graph.add(1)
    world.files.plant((*places.ISSUES, "007"), "a folder of somebody")
    end = await world.run()
    assert (end.reason, end.status) == ("degraded", 1)
    record = world.scheduler
    assert record.admission.reason == "epic-not-admissible"
    assert record.invocation.ended_at is not None
    assert world.workers.started == []
    assert len(world.said("nothing can be admitted")) == 1


async def test_a_run_of_its_own_holds_its_issue(world: World) -> None:
    world.graph.add(1)
    world.graph.add(2)
    state = EngineState(
        run_key=RunKey(101, 1),
        issue_url="https://github.com/Octo/Demo/issues/1",
        run_id="r-00000001",
        phase="review",
        config_digest=NO_DIGEST,
        branch="x",
        base_commit=None,
        tries={},
        updated_at=MOMENT,
    )
    world.files.write(places.STANDALONE, encode(state))
    await world.run()
    assert world.workers.issues == [2]
    assert world.said("#1 is left (standalone-state)")


async def test_who_was_killed_is_followed_rightly(world: World) -> None:
    for issue in (1, 2, 3, 4):
        world.graph.add(issue)
        world.workers.script[issue] = Script(ends=False)
    world.limit = 4
    await run_until_killed(world, lambda: len(world.workers.started) == 4)
    # One lives, one has settled, one is in the middle, one has saved nothing.
    world.workers.of(2).end(0, "ready_for_merge")
    world.workers.of(3).end(0, "review")
    world.workers.of(4).die()
    with pytest.raises(LockHeld):
        await world.run()
    world.workers.of(1).end(0, "blocked")
    world.graph.finish(3)
    world.workers.script = {}
    assert (await world.run()).status == 0
    assert world.closings(1) == world.closings(2) == ["settled"]
    assert world.closings(3) == ["resumable"]
    assert world.closings(4) == ["abandoned", "settled"]
    closed = world.namespace(3).claims[0].closed
    assert closed is not None
    assert "closed:completed" in closed.detail
    assert world.kernel.unlocked
    assert "controller" not in world.kernel.unlocked


async def test_a_child_that_went_elsewhere_is_orphaned(world: World) -> None:
    world.graph.add(1)
    world.graph.add(2)
    world.workers.script = {1: Script(ends=False), 2: Script(ends=False)}
    await run_until_killed(world, lambda: len(world.workers.started) == 2)
    world.workers.of(1).end(0, "review")
    world.workers.of(2).end()
    world.graph.give_away(1)
    await world.run()
    assert world.workers.issues == [1, 2]
    assert world.closings(1) == ["resumable"]
    assert world.said("#1: an earlier claim of it is closed")


@pytest.mark.parametrize("what", ["another issue", "a broken state"])
async def test_the_claim_of_what_is_uncertain_stays_as_it_is(
    world: World, what: str
) -> None:
    """Nobody goes on with it, and yet this run is not the one to say how it ended."""
    world.graph.add(1)
    world.workers.script[1] = Script(ends=False)
    await run_until_killed(world, lambda: len(world.workers.started) == 1)
    world.workers.of(1).end(0, "review")
    world.graph.finish(1)
    if what == "another issue":
        world.graph.change(1, id=9999)
    else:
        world.files.write(places.state(1), b"{")
    before = world.files.files[places.claim(1, 1)]
    assert (await world.run()).status == 0
    assert world.files.files[places.claim(1, 1)] == before
    assert world.workers.issues == [1]
    assert world.said("#1")
