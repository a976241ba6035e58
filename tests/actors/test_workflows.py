"""The actors of workflows over fakes: jobs once, over crashes, refusals and ends."""

from __future__ import annotations

from functools import partial

import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.actors.workflows import TOGETHER, TRY_AGAIN
from forge_actors.actors.workflows_messages import (
    Answer,
    Cancel,
    Count,
    Pause,
    Resume,
    Tell,
)
from forge_actors.domain.errors import (
    Forbidden,
    InvalidInput,
    Refused,
    Unavailable,
)
from forge_actors.domain.workflow_changes import WorkflowSaved
from tests.actors.workflows_kit import World, named

pytestmark = pytest.mark.mock_clock


async def test_steps_become_jobs_in_order_and_the_workflow_ends() -> None:
    async with World().open() as world:
        key = await world.begin(named("a"), named("b"), named("c", "a", "b"))
        assert world.names() == ["a", "b"]
        assert world.calls == [2]
        await world.end("a")
        await world.end("b")
        assert world.names() == ["a", "b", "c"]
        request = world.requests["job2"]
        assert (request.origin, request.work) == ("workflow:release", key)
        with trio.fail_after(1):
            await world.end("c")
            await world.workflows.wait(key)
        kinds = [event.kind for event in world.store.durable.events]
        assert kinds[-1] == "workflow_succeeded"
        assert world.store.active_workflows() == []
        assert await world.workflows.ask(key, Pause) is None


async def test_an_output_stands_in_the_jobs_behind_it() -> None:
    async with World().open() as world:
        world.outputs["job0"] = {"version": "1.2; rm -rf /"}
        job = {"argv": ["publish", "v${build.version}", "${who}"]}
        await world.begin(
            named("build"),
            named("ship", "build", job=job),
            named("lost", "build", job={"argv": ["${build.other}"]}),
            parameters={"who": "me"},
        )
        await world.end("build")
        assert world.requests["job1"].argv == ["publish", "v1.2; rm -rf /", "me"]
        [step] = [
            event.data["reason"]
            for event in world.store.durable.events
            if event.kind == "workflow_step_failed"
        ]
        assert "has no output 'other'" in str(step)


@pytest.mark.parametrize("recorded", [True, False])
async def test_a_step_has_one_job_whatever_is_killed_between(*, recorded: bool) -> None:
    """The runtime ends after the job was accepted: before, or after that is written
    down with the step."""
    first = World()
    async with first.open():
        key = await first.begin(named("a"), named("b", "a"))
    if not recorded:
        first.store.durable.workflow_steps.clear()
    second = first.again()
    async with second.open():
        assert second.names() == ["a"]
        await second.end("a")
        assert second.names() == ["a", "b"]
        _, states = await second.now(key)
        assert states == {"a": "succeeded", "b": "running"}


async def test_a_job_that_ended_while_nobody_looked_is_followed() -> None:
    first = World()
    async with first.open():
        await first.begin(named("a"), named("b", "a"))
    asleep = first.again()
    async with asleep.store.open():
        await asleep.end("a")
    second = asleep.again()
    async with second.open():
        await trio.testing.wait_all_tasks_blocked()
        assert second.names() == ["a", "b"]


async def test_a_refusal_for_now_is_tried_again_with_the_same_id() -> None:
    async with World().open() as world:
        world.refusals[None] = Unavailable("the service is full")
        key = await world.begin(*(named(f"s{n}") for n in range(TOGETHER + 1)))
        assert world.calls == [TOGETHER]
        told = await world.workflows.ask(key, Tell)
        assert told is not None
        assert "refused for now" in str(told[2][0][0].why)
        began = trio.current_time()
        world.refusals.clear()
        await trio.sleep(TRY_AGAIN)
        await trio.testing.wait_all_tasks_blocked()
        assert world.calls == [TOGETHER, TOGETHER, 1]
        assert trio.current_time() == began + TRY_AGAIN
        assert len(world.names()) == TOGETHER + 1


async def test_a_step_that_is_refused_for_now_holds_back_no_other() -> None:
    async with World().open() as world:
        world.refusals["a"] = Refused("it is busy")
        world.refusals["c"] = Forbidden("nobody allowed it")
        key = await world.begin(named("a"), named("b"), named("c"), named("d", "b"))
        await world.end("b")
        assert world.names() == ["b", "d"]
        world.refusals.clear()
        await trio.sleep(TRY_AGAIN)
        await trio.testing.wait_all_tasks_blocked()
        assert world.names() == ["b", "d", "a"]
        _, states = await world.now(key)
        assert states["c"] == "failed"


async def test_one_job_that_cannot_be_fails_its_step_alone() -> None:
    async with World().open() as world:
        world.refusals["bad"] = InvalidInput("cwd", "is no folder")
        key = await world.begin(named("good"), named("bad"), named("behind", "bad"))
        _, states = await world.now(key)
        assert states == {"good": "running", "bad": "failed", "behind": "skipped"}


async def test_a_pause_lets_nothing_new_begin() -> None:
    async with World().open() as world:
        key = await world.begin(named("a"), named("b", "a"))
        paused = await world.workflows.ask(key, Pause)
        assert paused is not None
        assert paused.state == "paused"
        await world.end("a")
        assert world.names() == ["a"]
    async with (again := world.again()).open():
        await again.workflows.ask(key, Resume)
        await trio.testing.wait_all_tasks_blocked()
        assert again.names() == ["a", "b"]


async def test_a_cancel_ends_the_jobs_also_the_one_that_is_being_submitted() -> None:
    async with World().open() as world:
        key = await world.begin(named("a"), named("b", "a"))
        await world.workflows.ask(key, Cancel)
        await world.workflows.wait(key)
        assert world.cancelled == ["job0"]
        state, _, _ = world.store.durable.workflows[key]
        assert state == "cancelled"


async def test_a_cancel_waits_for_no_other_try_of_what_was_refused() -> None:
    async with World().open() as world:
        world.refusals[None] = Unavailable("the service is full")
        key = await world.begin(named("a"), named("b", "a"))
        told = await world.workflows.ask(key, Count)
        assert told is not None
        assert told[2:] == ({"waiting": 2}, [])
        began = trio.current_time()
        await world.workflows.ask(key, Cancel)
        await world.workflows.wait(key)
        assert trio.current_time() == began
        assert world.names() == []


async def test_an_answer_is_given_once_it_is_durable() -> None:
    async with World().open() as world:
        key = await world.begin(named("a", gate="Go?"))
        await world.workflows.ask(key, partial(Answer, "a", True))
        with pytest.raises(Refused, match="asks nothing"):
            await world.workflows.ask(key, partial(Answer, "a", True))
        assert (key, "a") in world.store.durable.workflow_steps
        await trio.testing.wait_all_tasks_blocked()
        assert world.names() == ["a"]


async def test_many_steps_are_submitted_in_few_calls() -> None:
    async with World().open() as world:
        await world.begin(*(named(f"s{n}") for n in range(TOGETHER + 1)))
        assert world.calls == [TOGETHER, 1]


async def test_one_that_cannot_be_read_is_set_aside_alone() -> None:
    first = World()
    async with first.open():
        broken = await first.begin(named("a"))
        fine = await first.begin(named("b"))
    state, _, body = first.store.durable.workflows[broken]
    first.store.durable.workflows[broken] = (state, b"{", body)
    second = first.again()
    async with second.open():
        await second.workflows.wait(broken)
        state, definition, body = second.store.durable.workflows[broken]
        assert (state, definition) == ("quarantined", b"{")
        assert b"it is set aside: UnreadableWorkflow" in body
        assert second.store.active_workflows() == [fine]


async def test_an_actor_that_fails_is_started_again_and_after_a_while_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with World().open() as world:
        world.refusals["bad"] = ValueError("a bug")
        bad = await world.begin(named("bad"))
        await world.workflows.wait(bad)
        state, _, body = world.store.durable.workflows[bad]
        assert state == "quarantined"
        assert b"a bug" in body
        fine = await world.begin(named("good"))
        assert world.store.active_workflows() == [fine]
        del world.refusals["bad"]
        await world.workflows.retry(bad, [])
        await trio.testing.wait_all_tasks_blocked()
        assert world.names() == ["good", "bad"]


async def test_a_workflow_that_failed_goes_on_with_what_failed() -> None:
    async with World().open() as world:
        key = await world.begin(named("a"), named("b"), named("c", "b"))
        with pytest.raises(Refused, match="has not ended"):
            await world.workflows.retry(key, [])
        await world.end("a")
        await world.end("b", "failed")
        await world.workflows.wait(key)
        await world.workflows.retry(key, [])
        await trio.testing.wait_all_tasks_blocked()
        assert world.names() == ["a", "b", "b"]
        first, again = world.requests["job1"], world.requests["job2"]
        assert first.request_id != again.request_id
        assert structs.replace(again, request_id=None) == structs.replace(
            first, request_id=None
        )


async def test_old_ones_that_have_ended_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("forge_actors.actors.workflows.KEPT", 1)
    async with World().open() as world:
        keys = [await world.begin(named(f"s{n}")) for n in range(3)]
        for n in range(3):
            await world.end(f"s{n}")
        await world.store.save([WorkflowSaved(keys[2], "succeeded", b"{}")]).wait()
        assert list(world.store.durable.workflows) == [keys[2]]
        assert {of for of, _ in world.store.durable.workflow_steps} == {keys[2]}
