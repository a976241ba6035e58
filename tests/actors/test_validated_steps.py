"""Steps that are checks: a receipt moves its step once, whatever is killed."""

from __future__ import annotations

import pytest
import trio.testing
from msgspec import structs

from forge_actors.actors.workflows_messages import Tell
from forge_actors.domain.workflow_steps import Step, StepEnd
from forge_actors.domain.workflows import MAX_UNDECIDED
from tests.actors.workflows_kit import World, named

pytestmark = pytest.mark.mock_clock
LOST = StepEnd(
    "timed_out", "it ran too long", retryable=True, validation="infrastructure_failure"
)
PASSED = StepEnd("succeeded", validation="passed")


class Checked(World):
    """Says of the ends of jobs what `ends` says, in order."""

    ends: tuple[StepEnd, ...] = ()
    looks = 0

    async def _result(self, key: str, state: object) -> StepEnd:
        await trio.lowlevel.checkpoint()
        self.looks += 1
        return self.ends[min(int(key.removeprefix("job")), len(self.ends) - 1)]

    def next(self) -> Checked:
        other = Checked(self.again().store)
        other.requests, other.ends = self.requests, self.ends
        return other

    async def step(self, workflow: str) -> Step:
        told = await self.workflows.ask(workflow, Tell)
        assert told is not None
        return told[2][0][0]


async def test_an_end_that_nobody_saved_moves_its_step_once() -> None:
    first = Checked()
    first.ends = (LOST, PASSED)
    async with first.open():
        workflow = await first.begin(named("check"), named("last", "check"))
        assert first.names() == ["check"]
    # It ends while nobody is there, and whoever comes looks at what is kept of it.
    second = first.next()
    async with second.store.open():
        await second.end("check", "timed_out")
    async with second.open():
        await trio.testing.wait_all_tasks_blocked()
        step = await second.step(workflow)
        assert (step.state, step.undecided, step.failures) == ("running", 1, 0)
        assert (second.looks, second.names()) == (1, ["check", "check"])
    third = second.next()
    async with third.open():
        step = await third.step(workflow)
        assert (step.undecided, step.tries, third.looks) == (1, 2, 0)
        await third.end("check")
        assert third.names() == ["check", "check", "last"]


async def test_what_was_counted_is_not_counted_again_by_the_next_runtime() -> None:
    first = Checked()
    first.ends = (LOST,)
    async with first.open():
        workflow = await first.begin(named("check"))
        await first.end("check", "timed_out")
        assert (await first.step(workflow)).undecided == 1
        await first.end("check", "timed_out")
        before = structs.replace(await first.step(workflow))
    second = first.next()
    async with second.open():
        assert await second.step(workflow) == before
        await second.end("check", "timed_out")
        await second.workflows.wait(workflow)
    assert len(second.names()) == MAX_UNDECIDED
    header = second.store.durable.workflows[workflow]
    assert b"failed" in header[-1]
