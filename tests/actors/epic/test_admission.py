"""Beginning the work on an issue: what is written for it, and why it may not be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from msgspec import structs

from forge_actors.actors import epic
from forge_actors.domain.epic import places
from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.records import (
    MAX_DETAIL,
    Assignment,
    RunKey,
    decode,
    encode,
)
from forge_actors.domain.epic.workers import NO_LOG, NO_WORKER, OwnSlots
from forge_actors.domain.timestamps import timestamp
from forge_actors.testing.epic.records import OTHER_EPIC
from forge_actors.testing.epic.workers import Script, save_state
from tests.actors.epic.test_failures import Failing
from tests.actors.epic.test_passes import later
from tests.actors.epic.test_starts import run_until_killed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.domain.epic.stopping import End
    from forge_actors.testing.epic.workers import ScriptedWorker
    from tests.actors.epic.world import World

pytestmark = pytest.mark.mock_clock


class Slots(OwnSlots):
    """Slots of a service, which grants what it likes and is told what it granted in
    vain."""

    def __init__(self, *granted: int, lost: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__()
        self.wants: list[list[int]] = []
        self.refused: list[tuple[int, str]] = []
        self._granted = granted
        self._lost = list(lost)

    def want(self, issues: Sequence[int]) -> None:
        super().want(issues)
        self.wants.append(list(issues))

    def granted(self) -> Sequence[int]:
        return [*self._granted, *super().granted()]

    def refuse(self, issue: int, reason: str) -> None:
        self.refused.append((issue, reason))

    def lost(self) -> Sequence[tuple[int, str]]:
        told, self._lost = self._lost, []
        return told


async def run(world: World, slots: OwnSlots) -> End:
    context = world.make()
    context.slots = slots
    return await epic.run(context)


async def leave_two(world: World) -> None:
    """A run is killed, and its two workers end in the middle of the work."""
    for issue in (1, 2):
        world.graph.add(issue)
        world.workers.script[issue] = Script(ends=False)
    await run_until_killed(world, lambda: len(world.workers.started) == 2)
    for issue in (1, 2):
        world.workers.of(issue).end(0, "review")


def when_first_starts(world: World, do: Callable[[], object]) -> None:
    """Do something between the admission of the first issue and that of the second."""

    def started(worker: ScriptedWorker) -> None:
        if worker.order.claim.run_key.issue_number == 1:
            do()

    world.workers.when_started = started


async def test_all_that_is_written_of_an_issue_says_what_it_is_about(
    world: World,
) -> None:
    world.graph.add(3, title="A thing to do")
    assert (await world.run()).status == 0
    found, key = world.namespace(3), RunKey(101, 3)
    binding, now = found.binding, timestamp(world.clock.wall())
    assert binding is not None
    assert (binding.run_key, binding.issue_id) == (key, 9003)
    assert (binding.owner, binding.name) == ("octo", "demo")
    assert (binding.epic, binding.worktree) == (
        world.graph.root.ref,
        "/repo/worktrees/3",
    )
    assert binding.created_at == now
    assigned = decode(Assignment, world.files.files[places.assignment(3)])
    assert (assigned.run_key, assigned.issue_id) == (key, 9003)
    assert assigned.url == "https://github.com/octo/demo/issues/3"
    assert assigned.title == "A thing to do"
    [claim] = found.claims
    assert (claim.run_key, claim.issue_id, claim.epic) == (
        *(key, 9003),
        world.graph.root.ref,
    )
    assert claim.claim_id.startswith("c-000")
    assert claim.invocation_id == world.scheduler.invocation.id
    assert (claim.kind, claim.generation, claim.supersedes) == ("start", 1, None)
    assert claim.opened_at == now
    summary, [worker] = world.scheduler.last_snapshot, world.workers.started
    assert summary is not None
    assert claim.admission.observed_at <= summary.observed_at
    assert claim.admission.node_digest != claim.admission.snapshot_digest
    noted = claim.worker
    assert noted is not None
    assert (noted.pid, noted.start_time) == (worker.pid, worker.start_time)
    assert (noted.recorded_at, noted.log) == (now, worker.log)
    assert (
        "epic_issue_started",
        {"issue": 3, "how": "start", "generation": 1},
    ) in world.told
    assert world.said("#3: start, generation 1", f"pid {worker.pid}", worker.log)
    order = worker.order
    assert order.repository == world.graph.home
    assert order.claim == structs.replace(claim, worker=None, closed=None)
    assert world.kernel.held == {}, "every lock is given back"


async def test_one_that_settles_meanwhile_is_closed_and_not_begun(world: World) -> None:
    await leave_two(world)
    orders = {1: world.workers.of(1).order, 2: world.workers.of(2).order}
    before = len(world.workers.started)
    world.workers.script = {}
    when_first_starts(world, lambda: save_state(world.files, orders[2], "done"))
    assert (await world.run()).status == 0
    assert world.workers.issues[before:] == [1]
    assert world.said("#2: the work on it has come to its end (done)")
    [claim] = world.namespace(2).claims
    assert claim.closed is not None
    assert (claim.closed.classification, claim.closed.settlement) == ("settled", "done")
    assert claim.closed.exit_status is None
    assert claim.closed.detail == "the work on it has come to its end (done)"
    assert claim.closed.at == timestamp(world.clock.wall())
    [left] = world.said("#2 is left (settled-namespace)")
    assert "(done)" in left
    assert "earlier claim" not in left
    assert world.kernel.held == {}


async def test_one_that_settles_and_cannot_be_closed_stays_open(world: World) -> None:
    await leave_two(world)
    order = world.workers.of(2).order
    world.workers.script = {}

    def settle() -> None:
        save_state(world.files, order, "failed")
        Failing(world, lambda place: place == places.claim(2, 1))
        failing = world.root
        world.context.namespaces._root = failing  # type: ignore[attr-defined]

    when_first_starts(world, settle)
    assert (await world.run()).status == 0
    assert world.said("#2: its claim stays open", "may not be written")
    assert world.closings(2) == [None]
    [left] = world.said("#2 is left (settled-namespace)")
    assert "an earlier claim of it stays open" in left


async def test_one_that_another_epic_takes_meanwhile_is_left_to_that(
    world: World,
) -> None:
    await leave_two(world)
    binding = world.namespace(2).binding
    assert binding is not None
    foreign = encode(structs.replace(binding, epic=OTHER_EPIC))
    before = len(world.workers.started)
    world.workers.script = {}
    when_first_starts(world, lambda: world.files.write(places.binding(2), foreign))
    assert (await world.run()).status == 0
    assert world.workers.issues[before:] == [1]
    assert world.said("#2: another EPIC works on it")
    assert world.said("#2 is left (other-epic)")


async def test_one_that_becomes_unreadable_meanwhile_is_left_alone(
    world: World,
) -> None:
    world.graph.add(1)
    world.graph.add(2)
    when_first_starts(world, lambda: world.files.write(places.binding(2), b"{"))
    assert (await world.run()).status == 0
    assert world.workers.issues == [1]
    assert world.said("#2: it is left alone: ")
    [left] = world.said("#2 is left (uncertain)")
    assert "earlier claim" not in left


async def test_whoever_grants_slots_is_told_what_began_in_vain(world: World) -> None:
    for issue in (1, 2, 3, 4):
        world.graph.add(issue)
    world.graph.block(4, 3)
    world.limit = 2
    context = world.make()
    world.locks.problems[1] = "it is a folder"
    world.workers.script[2] = Script(ends=False)
    world.workers.script[3] = Script(ends=False)
    slots = Slots(4, 3)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 5.0, lambda: world.workers.of(2).end())
        nursery.start_soon(later, 6.0, lambda: world.workers.of(3).end())
        context.slots = slots
        await epic.run(context)
    assert slots.wants[:2] == [[1, 2], []]
    assert world.workers.issues == [3, 2]
    gone, full = "it is not ready any more", "nothing more begins"
    assert slots.refused[:4] == [(4, gone), (1, "it was skipped"), (4, full), (3, full)]
    assert slots.refused[4:6] == [(4, gone), (3, gone)]


async def test_nothing_is_begun_beyond_the_slots(world: World) -> None:
    for issue in (1, 2, 3):
        world.graph.add(issue)
        world.workers.script[issue] = Script(ends=False)
    world.limit = 1
    slots = Slots(2)

    def first() -> None:
        assert world.workers.issues == [2]
        assert slots.refused == [(1, "nothing more begins")]
        for issue in (1, 3):
            world.workers.script[issue] = Script()
        world.workers.of(2).end()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(later, 5.0, first)
        assert (await run(world, slots)).status == 0
    assert sorted(world.workers.issues) == [1, 2, 3]


async def test_one_that_lost_its_slot_for_good_is_held(world: World) -> None:
    world.graph.add(1)
    world.graph.add(2)
    end = await run(world, Slots(lost=[(1, "its job was cancelled")]))
    assert (end.status, world.workers.issues) == (0, [2])
    assert world.said("#1: its job was cancelled")
    assert world.said("#1 is left (spawn-failed)")


async def test_an_issue_that_changed_is_granted_in_vain(world: World) -> None:
    world.graph.add(1)
    slots = Slots()
    world.graph.after("snapshot", lambda: world.graph.change(1, title="x", children=2))
    await run(world, slots)
    assert slots.refused == [(1, "it was stale")]
    assert world.said("#1 has changed: ")
    assert world.graph.count("snapshot") == 2


@pytest.mark.parametrize(
    ("failure", "prefix", "why"),
    [
        ("no-log", NO_LOG, "a link is in its place"),
        ("nothing", NO_WORKER, "there is no memory left"),
    ],
)
async def test_a_claim_without_a_worker_is_closed_with_the_reason(
    world: World, failure: str, prefix: str, why: str
) -> None:
    world.graph.add(1)
    world.workers.script[1] = Script(failure=failure)  # type: ignore[arg-type]
    assert (await world.run()).status == 0
    [claim] = world.namespace(1).claims
    assert claim.closed is not None
    assert claim.closed.classification == "abandoned"
    assert (claim.closed.settlement, claim.closed.exit_status) == (None, None)
    assert claim.closed.detail == f"{prefix}{why}"
    assert claim.closed.at == timestamp(world.clock.wall())
    assert len(claim.closed.detail) <= MAX_DETAIL
    assert world.said(f"#1: {prefix}{why}")
    assert world.said("#1 is left (spawn-failed)")
    assert world.kernel.held == {}


async def test_a_worker_that_runs_although_it_was_not_started_keeps_its_claim(
    world: World,
) -> None:
    world.graph.add(1)
    world.workers.script[1] = Script(failure="runs")
    assert (await world.run()).status == 0
    assert world.said("#1: it said so too late, and yet something has its lock")
    [left] = world.said("#1 is left (owned)")
    assert "somebody else works on it" in left
    assert world.closings(1) == [None]


async def test_a_lock_that_breaks_while_a_worker_fails_leaves_its_claim(
    world: World,
) -> None:
    world.graph.add(1)
    world.workers.script[1] = Script(failure="nothing")
    context = world.make()
    start = world.workers.start

    async def breaking(order: object) -> object:
        world.locks.problems[1] = "it is a link"
        return await start(order)  # type: ignore[arg-type]

    world.workers.start = breaking  # type: ignore[method-assign,assignment]
    assert (await epic.run(context)).status == 0
    assert world.said("#1: there is no memory left, and it is a link")
    assert world.said("#1 is left (uncertain)")
    assert world.closings(1) == [None]


async def test_a_state_that_cannot_be_written_at_all_is_told(world: World) -> None:
    world.graph.add(1)

    def refuse(_place: places.Place) -> bool:
        return _place == places.assignment(1)

    Failing(world, refuse)
    slots = Slots()
    assert (await run(world, slots)).status == 0
    assert slots.refused == [(1, "it was skipped")]
    assert world.said("#1: it is left alone: ", str(StateError("it may not")))
    assert world.said("#1 is left (uncertain)")
