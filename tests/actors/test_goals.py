"""How the actor of a workflow moves a goal on, and what people do with one."""

from __future__ import annotations

from typing import Any

import pytest
import trio.testing

from forge_actors.actors.workflows_messages import Cancel, Pause, Resume
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.rounds import Marks, Terms, TurnRequest
from forge_actors.domain.workflow_definitions import Definition
from forge_actors.domain.workflow_records import header_of
from forge_actors.domain.workflow_steps import Workflow
from tests.actors.workflows_kit import JOB, World, step

pytestmark = pytest.mark.mock_clock


async def begin(world: World, **terms: Any) -> str:
    parts = (step("act", request=JOB), step("check", request=JOB))
    definition = Definition("mend", "goal", parts, goal=Terms(**terms))
    await world.workflows.begin(
        Workflow("1", "mend", "goal", "0", 0.0), definition, None
    )
    await trio.testing.wait_all_tasks_blocked()
    return "1"


def ended(world: World) -> Workflow:
    row = world.store.workflow("1")
    assert row is not None
    return header_of(row[0][1])


async def test_a_job_of_a_round_knows_the_ones_before() -> None:
    async with World().open() as world:
        await begin(world)
        await world.end("act-1")
        await world.end("check-1", "failed")
        await world.end("act-2")
        await world.end("check-2")
        await world.workflows.wait("1")
        assert world.names() == ["act-1", "check-1", "act-2", "check-2"]
        requests = list(world.requests.values())
        assert all(isinstance(each, TurnRequest) for each in requests)
        turns = [each.turn for each in requests if isinstance(each, TurnRequest)]
        assert [turn.before for turn in turns] == [
            (),
            ("job0",),
            ("job0",),
            ("job2", "job0"),
        ]
        assert [turn.check for turn in turns] == [None, None, "job1", None]
        assert [turn.round for turn in turns] == [1, 1, 2, 2]
        assert (ended(world).state, ended(world).why) == (
            "succeeded",
            "the check passed in round 2",
        )


async def test_a_goal_that_is_paused_begins_nothing_until_it_goes_on() -> None:
    async with World().open() as world:
        workflow = await begin(world)
        await world.workflows.ask(workflow, Pause)
        await world.end("act-1")
        assert world.names() == ["act-1"]
        await world.workflows.ask(workflow, Resume)
        await trio.testing.wait_all_tasks_blocked()
        assert world.names() == ["act-1", "check-1"]
        kinds = [event.kind for event in world.store.durable.events]
        assert kinds.index("workflow_paused") < kinds.index("workflow_resumed")


async def test_a_goal_that_is_cancelled_ends_its_job_and_can_be_begun_anew() -> None:
    async with World().open() as world:
        workflow = await begin(world)
        await world.end("act-1")
        await world.workflows.ask(workflow, Cancel)
        await world.workflows.wait(workflow)
        assert world.cancelled == ["job1"]
        assert ended(world).state == "cancelled"
        await world.workflows.retry(workflow, [])
        await trio.testing.wait_all_tasks_blocked()
        header, states = await world.now(workflow)
        assert header.state == "running"
        assert states == {
            "act-1": "succeeded",
            "check-1": "cancelled",
            "act-2": "running",
        }


async def test_a_goal_in_circles_waits_for_a_person_and_says_so() -> None:
    async with World().open() as world:
        world.marks = {f"check-{n}": Marks(likeness="same") for n in (1, 2)}
        await begin(world)
        for number in (1, 2):
            await world.end(f"act-{number}")
            await world.end(f"check-{number}", "failed")
        await world.workflows.wait("1")
        assert ended(world).state == "human_attention_required"
        kinds = [event.kind for event in world.store.durable.events]
        assert kinds.count("workflow_human_attention_required") == 1


async def test_jobs_that_cannot_be_are_failures_and_end_by_themselves() -> None:
    async with World().open() as world:
        world.refusals = {None: InvalidInput("worktree", "cannot be made again")}
        await begin(world, failures=2)
        await world.workflows.wait("1")
        told = ended(world)
        assert told.state == "human_attention_required"
        assert told.why is not None
        assert "its act failed 2 times in a row" in told.why
        assert world.names() == []
