"""A worker of a job that has inputs: they are placed, then it is launched."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.actors.isolating import Isolating
from forge_actors.domain.inputs import Input, InputsWanted
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.inputs import FakeInputs
from tests.actors.test_isolating import Case, opened

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.mock_clock

FOLDER = "/home/inputs/job.1"
WANTED = InputsWanted(FOLDER, (Input("build", "build"),), 10, 10, 60.0)


@asynccontextmanager
async def taking(
    *, in_worktree: bool = False
) -> AsyncGenerator[tuple[Case, FakeInputs], None]:
    """A worker of a job that is to have inputs, and who places these."""
    async with opened() as case:
        wanted = case.order.wanted if in_worktree else None
        case.order = structs.replace(case.order, inputs=WANTED, wanted=wanted)
        inputs = FakeInputs()
        case.worker._isolating = Isolating(
            case.store, case.worktrees, FakeClock(), inputs=inputs
        )
        yield case, inputs


async def test_it_is_launched_when_its_inputs_are_there() -> None:
    async with taking() as (case, inputs), trio.open_nursery() as nursery:
        inputs.held = trio.Event()
        nursery.start_soon(case.run)
        await trio.testing.wait_all_tasks_blocked()
        assert case.launcher.orders == []
        inputs.held.set()
        await trio.testing.wait_all_tasks_blocked()
        [order] = case.launcher.orders
        assert order.inputs == structs.replace(WANTED, placed=True)
        assert inputs.folders == {FOLDER}
        case.launcher.finish("job", exit_code=0)
        await trio.testing.wait_all_tasks_blocked()
        assert case.receipt.exit_code == 0


async def test_without_them_it_does_not_start_and_no_worktree_is_made() -> None:
    async with taking(in_worktree=True) as (case, inputs):
        inputs.problem = "job build kept no artifact"
        await case.run()
        receipt = case.receipt
        assert (receipt.ending, receipt.code) == ("spawn", "INPUTS_MISSING")
        assert receipt.error == "job build kept no artifact"
        assert case.launcher.orders == []
        assert case.store.worktree("job") is None


async def test_they_go_again_where_its_worktree_cannot_be_made() -> None:
    async with taking(in_worktree=True) as (case, inputs):
        case.worktrees.failure = "the disk is full"
        await case.run()
        assert (case.receipt.ending, case.receipt.code) == ("spawn", None)
        assert inputs.folders == set()


async def test_a_stop_while_they_are_placed_takes_them_away() -> None:
    async with taking() as (case, inputs), trio.open_nursery() as nursery:
        inputs.held = trio.Event()
        nursery.start_soon(case.run)
        await trio.testing.wait_all_tasks_blocked()
        assert inputs.folders == {FOLDER}
        case.worker.stop(ending="cancel")
        await trio.testing.wait_all_tasks_blocked()
        assert case.receipt.ending == "stop"
        assert case.launcher.orders == []
        assert inputs.folders == set()


async def test_nothing_is_placed_for_one_that_cannot_start_anyway() -> None:
    async with taking() as (case, inputs):
        case.order = structs.replace(case.order, problem="there is no secret TOKEN")
        await case.run()
        assert case.receipt.error == "there is no secret TOKEN"
        assert inputs.folders == set()
