"""What the actor of a workflow saves and tells, and what it does about refusals."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.actors.workflows_messages import (
    Answer,
    Cancel,
    Count,
    Looked,
    Pause,
    Resume,
)
from forge_actors.domain.campaigns import ITEMS
from forge_actors.domain.errors import (
    ForgeError,
    Refused,
    Unavailable,
)
from forge_actors.domain.rounds import Marks, Terms, TurnRequest
from forge_actors.domain.workflow_definitions import Definition
from forge_actors.domain.workflow_records import loaded
from forge_actors.domain.workflow_requests import request_id
from forge_actors.domain.workflow_steps import StepEnd, Workflow
from tests.actors.workflows_kit import JOB, World, named, step

if TYPE_CHECKING:
    from forge_actors.domain.jobs import State
    from forge_actors.domain.rounds import Turn
    from forge_actors.domain.workflow_steps import Step

pytestmark = pytest.mark.mock_clock

WALL = 1000.0


def saved(world: World, key: str) -> tuple[Workflow, dict[str, Step]]:
    """A workflow and its steps as they are durable."""
    row = world.store.workflow(key)
    assert row is not None
    header, _, steps = loaded(*row)
    return header, {one.name: one for one in steps}


def events(world: World) -> list[tuple[str, dict[str, Any]]]:
    """What the history says of workflows, but for which one it is."""
    found = []
    for event in world.store.durable.events:
        if event.kind.startswith("workflow_"):
            data = dict(event.data)
            assert data.pop("workflow")
            assert data.pop("name") == "release"
            found.append((event.kind, data))
    return found


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def test_moments_of_steps_are_those_of_the_wall_clock() -> None:
    async with World().open() as world:
        world.clock.set_wall(WALL)
        key = await world.begin(named("a"))
        began = world.clock.wall()
        _, steps = saved(world, key)
        assert (steps["a"].state, steps["a"].job) == ("running", "job0")
        assert (steps["a"].tries, steps["a"].began) == (1, began)
        await trio.sleep(5.0)
        await world.end("a")
        header, steps = saved(world, key)
        assert steps["a"].ended == began + 5.0
        assert (header.state, header.ended) == ("succeeded", began + 5.0)
        assert header.counts == {"succeeded": 1}
        [end] = [e for e in world.store.durable.events if e.kind[:10] == "workflow_s"]
        assert end.at == world.clock.now() == began + 5.0 - WALL
        assert events(world) == [
            ("workflow_began", {"steps": 1}),
            ("workflow_succeeded", {}),
        ]


async def test_the_end_of_one_that_failed_says_why_and_counts_its_steps() -> None:
    async with World().open() as world:
        key = await world.begin(named("a"), named("b", "a"))
        await world.end("a", "failed")
        await world.workflows.wait(key)
        header, _ = saved(world, key)
        assert header.state == "failed"
        assert header.counts == {"failed": 1, "skipped": 1}
        assert header.why is not None
        assert events(world)[-1] == ("workflow_failed", {"reason": header.why})


async def test_each_request_of_a_person_is_told_once() -> None:
    async with World().open() as world:
        key = await world.begin(named("a", gate="Go?"))
        for ask, state in (
            *((Pause, "paused"), (Pause, "paused"), (Resume, "running")),
            *((Resume, "running"), (Pause, "paused")),
        ):
            told = await world.workflows.ask(key, ask)
            assert told is not None
            assert told.state == state
            assert saved(world, key)[0].state == state
        kinds = [kind for kind, _ in events(world)]
        assert kinds[2:] == ["workflow_paused", "workflow_resumed", "workflow_paused"]
        # It may be answered while it is paused, and begins when it is not any more.
        answered = await world.workflows.ask(key, partial(Answer, "a", True))
        assert answered is not None
        assert answered.state == "paused"
        assert saved(world, key)[1]["a"].approved
        assert world.names() == []
        await world.workflows.ask(key, Resume)
        await settle()
        assert world.names() == ["a"]


async def test_a_no_fails_the_step_at_its_moment() -> None:
    async with World().open() as world:
        key = await world.begin(named("a", gate="Go?"))
        await trio.sleep(3.0)
        await world.workflows.ask(key, partial(Answer, "a", False))
        await world.workflows.wait(key)
        header, steps = saved(world, key)
        assert (header.state, steps["a"].state) == ("failed", "failed")
        assert steps["a"].ended == world.clock.wall()
        assert world.names() == []


class Lasting(World):
    """Jobs that are asked to end go on for now; and what was asked of others."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.problem: ForgeError | None = None
        #: Submissions wait for this one, if there is one.
        self.held: trio.Event | None = None
        self.asked: list[tuple[str, str, State]] = []
        self.broken: ForgeError | None = None

    async def _cancel(self, key: str) -> None:
        self.cancelled.append(key)
        if self.problem is not None:
            raise self.problem

    async def _submit(self, requests: Any) -> list[str]:
        made = await super()._submit(requests)
        if self.held is not None:
            await self.held.wait()
        return made

    async def _result(self, key: str, state: State) -> StepEnd:
        self.asked.append(("result", key, state))
        if self.broken is not None:
            raise self.broken
        return await super()._result(key, state)

    async def _marks(self, key: str, turn: Turn, end: StepEnd) -> Marks:
        self.asked.append((f"{turn.role} {turn.number}", key, end.state))
        return await super()._marks(key, turn, end)


async def test_one_that_is_being_cancelled_is_asked_nothing_else() -> None:
    world = Lasting()
    async with world.open():
        world.problem = Refused("it has ended")
        key = await world.begin(named("a", gate="Go?"), named("b"), named("c", "b"))
        told = await world.workflows.ask(key, Cancel)
        assert told is not None
        assert told.state == "cancelling"
        await settle()
        assert world.cancelled == ["job0"]
        assert events(world)[-1] == ("workflow_cancelling", {})
        for ask in (Pause, Resume, partial(Answer, "a", True)):
            with pytest.raises(Refused, match="workflow 'release' is cancelling"):
                await world.workflows.ask(key, ask)
        # A second cancel asks the jobs again, and is told to nobody.
        await world.workflows.ask(key, Cancel)
        await settle()
        assert world.cancelled == ["job0", "job0"]
        kinds = [kind for kind, _ in events(world)]
        assert kinds.count("workflow_cancelling") == 1
        await world.end("b", "cancelled")
        await world.workflows.wait(key)
        header, steps = saved(world, key)
        assert header.state == "cancelled"
        assert {name: one.state for name, one in steps.items()} == {
            **dict.fromkeys("abc", "cancelled")
        }


async def test_a_job_that_comes_after_the_cancel_is_ended_too() -> None:
    world = Lasting()
    async with world.open():
        world.held = trio.Event()
        key = await world.begin(named("a"), named("b", "a"))
        assert saved(world, key)[1] == {}
        await world.workflows.ask(key, Cancel)
        await settle()
        assert world.cancelled == []
        world.held.set()
        await settle()
        assert world.cancelled == ["job0"]
        assert saved(world, key)[1]["a"].job == "job0"
        await world.end("a", "cancelled")
        await world.workflows.wait(key)
        assert saved(world, key)[0].state == "cancelled"


async def test_one_submission_is_under_way_at_a_time() -> None:
    world = Lasting()
    async with world.open():
        world.held = trio.Event()
        key = await world.begin(named("a"), named("b", gate="Go?"))
        await world.workflows.ask(key, partial(Answer, "b", True))
        await settle()
        assert world.calls == [1]
        world.held.set()
        await settle()
        assert world.calls == [1, 1]
        assert world.names() == ["a", "b"]


async def test_a_job_is_asked_for_with_all_that_names_its_step() -> None:
    async with World().open() as world:
        key = await world.begin(named("a", retries=1))
        [request] = world.requests.values()
        assert request == structs.replace(
            JOB,
            name="a",
            request_id=request_id(key, "a", 1),
            origin="workflow:release",
            work=key,
        )
        await world.end("a", "failed")
        assert world.requests["job1"].request_id == request_id(key, "a", 2)


async def test_what_a_job_left_is_asked_for_by_its_end() -> None:
    world = Lasting()
    async with world.open():
        world.outputs["job0"] = {"1": "one", "2": "two"}
        template = step("item", request=structs.replace(JOB, name="${item}"))
        items = (named(ITEMS, gives_items=True),)
        campaign = Definition("release", "campaign", items, template=template)
        key = "c1"
        await world.workflows.begin(
            Workflow(key, "release", "campaign", "0", 0.0), campaign, None
        )
        await settle()
        await world.end(ITEMS)
        assert world.asked == [("result", "job0", "succeeded")]
        assert saved(world, key)[1][ITEMS].items == ("one", "two")


async def test_a_job_whose_end_cannot_be_read_ended_all_the_same() -> None:
    world = Lasting()
    async with world.open():
        world.broken = Unavailable("the log is gone")
        key = await world.begin(named("a"), named("b"))
        await world.end("a", "failed")
        step_ = saved(world, key)[1]["a"]
        assert (step_.state, step_.ended) == ("failed", world.clock.wall())
        assert "the log is gone" in (step_.why or "")
        await world.end("b")
        assert saved(world, key)[1]["b"].state == "succeeded"


async def test_the_jobs_of_a_goal_are_asked_for_in_their_turn() -> None:
    world = Lasting()
    async with world.open():
        world.marks = {"act-1": Marks(tokens=10), "check-1": Marks(likeness="x")}
        steps = (step("act", request=JOB), step("check", request=JOB))
        goal = Definition("release", "goal", steps, goal=Terms(rounds=2))
        key = "g1"
        await world.workflows.begin(
            Workflow(key, "release", "goal", "0", 0.0), goal, None
        )
        await settle()
        told = await world.workflows.ask(key, Count)
        assert told is not None
        _, _, counts, listed = told
        assert counts == {"running": 1}
        assert [(one.name, defined.name) for one, defined in listed] == [
            ("act-1", "act-1")
        ]
        [request] = world.requests.values()
        assert isinstance(request, TurnRequest)
        assert (request.turn.role, request.turn.number) == ("act", 1)
        assert request.request_id == request_id(key, "act-1", 1)
        await world.end("act-1")
        assert world.asked == [
            ("result", "job0", "succeeded"),
            ("act 1", "job0", "succeeded"),
        ]
        assert saved(world, key)[1]["act-1"].marks == Marks(tokens=10)


async def test_what_is_told_of_a_step_is_of_its_present_job() -> None:
    async with World().open() as world:
        key = await world.begin(named("a", retries=1))
        await world.end("a", "failed")
        assert saved(world, key)[1]["a"].job == "job1"
        keeper = world.workflows._kept[key].keeper
        for name, job in (("a", "job0"), ("none", "job1")):
            end = StepEnd("succeeded")
            keeper.tell(Looked(name, job, end))
        await settle()
        assert saved(world, key)[1]["a"].state == "running"
        keeper.tell(Looked("a", "job1", StepEnd("succeeded")))
        await world.workflows.wait(key)
        assert saved(world, key)[0].state == "succeeded"


async def test_a_runtime_goes_on_with_what_was_being_cancelled() -> None:
    first = Lasting()
    async with first.open():
        key = await first.begin(named("a"), named("b", "a"))
        await first.workflows.ask(key, Cancel)
    async with (second := first.again()).open():
        await second.workflows.wait(key)
        assert second.cancelled == ["job0"]
        header, steps = saved(second, key)
        assert (header.state, steps["b"].state) == ("cancelled", "cancelled")
        assert steps["b"].ended is not None
