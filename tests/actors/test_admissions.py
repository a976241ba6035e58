"""A worker of a candidate: it is admitted, then launched with what it was given."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.actors.isolating import Isolating
from forge_actors.domain.admissions import NOT_ADMITTED, AdmissionWanted
from forge_actors.domain.errors import Unavailable
from forge_actors.testing.admissions import FakeAdmissions
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.inputs import FakeInputs
from tests.actors.test_inputs import FOLDER
from tests.actors.test_inputs import WANTED as INPUTS
from tests.actors.test_isolating import Case, opened

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.mock_clock

WANTED = AdmissionWanted("epic:1", 7)


@asynccontextmanager
async def candidate() -> AsyncGenerator[tuple[Case, FakeAdmissions], None]:
    """A worker of one, and who admits it."""
    async with opened() as case:
        case.order = structs.replace(
            case.order, wanted=None, admission=WANTED, lasting=True, env={"A": "b"}
        )
        admissions, inputs = FakeAdmissions(), FakeInputs()
        case.worker._isolating = Isolating(
            case.store,
            case.worktrees,
            FakeClock(),
            inputs=inputs,
            admissions=admissions,
        )
        yield case, admissions


async def test_it_begins_as_it_was_admitted_and_its_end_is_told() -> None:
    async with candidate() as (case, admissions), trio.open_nursery() as nursery:
        admissions.held = trio.Event()
        nursery.start_soon(case.run)
        await trio.testing.wait_all_tasks_blocked()
        assert case.launcher.orders == []
        [asked] = admissions.asked
        assert asked.admission == WANTED
        admissions.held.set()
        await trio.testing.wait_all_tasks_blocked()
        [order] = case.launcher.orders
        assert order.admission is None
        assert order.lasting
        assert order.argv[-2:] == ("--claim", "1")
        assert order.env == {"A": "b", "GIVEN": "yes"}
        assert case.launcher.descriptors == {("job", 1): (71, 72)}
        [given] = admissions.given
        assert (given.descriptors.closed, given.ended) == (1, [])
        assert given.began == [case.launcher.running[0].identity]
        case.launcher.finish("job", exit_code=3)
        await trio.testing.wait_all_tasks_blocked()
        assert given.ended == [case.receipt]
        assert case.receipt.exit_code == 3


async def test_one_that_is_not_admitted_has_no_process_and_is_called_off() -> None:
    async with candidate() as (case, admissions):
        admissions.reason = "issue #7 was closed meanwhile"
        case.order = structs.replace(case.order, inputs=INPUTS)
        await case.run()
        assert case.launcher.orders == []
        receipt = case.receipt
        assert (receipt.ending, receipt.code) == ("cancel", NOT_ADMITTED)
        assert receipt.error == "issue #7 was closed meanwhile"
        assert receipt.started_at is None
        isolating = case.worker._isolating
        assert isolating is not None
        assert isinstance(isolating.inputs, FakeInputs)
        assert FOLDER not in isolating.inputs.folders


async def test_where_nobody_admits_nobody_is() -> None:
    async with candidate() as (case, _):
        isolating = case.worker._isolating
        assert isolating is not None
        case.worker._isolating = structs.replace(isolating, admissions=None)
        await case.run()
        assert (case.receipt.ending, case.receipt.code) == ("cancel", NOT_ADMITTED)


async def test_what_cannot_be_found_out_is_why_it_is_not() -> None:
    async with candidate() as (case, admissions):

        async def fail(_: object) -> object:
            raise Unavailable("GitHub does not answer")

        admissions.admit = fail  # type: ignore[assignment, method-assign]
        await case.run()
        told = (case.receipt.ending, case.receipt.code, case.receipt.error)
        assert told == ("cancel", NOT_ADMITTED, "GitHub does not answer")


async def test_a_stop_while_it_is_asked_for_leaves_nothing_open() -> None:
    async with candidate() as (case, admissions), trio.open_nursery() as nursery:
        admissions.held = trio.Event()
        nursery.start_soon(case.run)
        await trio.testing.wait_all_tasks_blocked()
        case.worker.stop()
        await trio.testing.wait_all_tasks_blocked()
        assert (case.receipt.ending, case.receipt.code) == ("stop", None)
        assert admissions.given == []
        assert case.launcher.orders == []


async def test_a_stop_just_as_it_is_admitted_closes_what_it_was_given() -> None:
    async with candidate() as (case, admissions):
        real = admissions.admit

        async def admit_and_stop(order: object) -> object:
            found = await real(order)  # type: ignore[arg-type]
            case.worker.stop()
            return found

        admissions.admit = admit_and_stop  # type: ignore[assignment, method-assign]
        await case.run()
        [given] = admissions.given
        assert given.descriptors.closed == 1
        assert case.launcher.orders == []
        assert case.receipt.ending == "stop"
        assert (given.began, given.ended) == ([], [case.receipt])


async def test_what_it_was_given_is_closed_where_nothing_can_be_launched() -> None:
    async with candidate() as (case, admissions):
        case.launcher.go_down()
        await case.run()
        [given] = admissions.given
        assert given.descriptors.closed == 1
        assert given.ended == [case.receipt]
        assert case.receipt.ending == "stop"


async def test_a_worker_that_lets_go_of_it_tells_nobody() -> None:
    async with candidate() as (case, admissions), trio.open_nursery() as nursery:
        case.worker.detach()
        nursery.start_soon(case.run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        await trio.lowlevel.checkpoint_if_cancelled()
    [given] = admissions.given
    assert (len(given.began), given.ended) == (1, [])
    assert case.unclaimed == []
    assert len(case.launcher.running) == 1


async def test_one_that_is_killed_is_asked_to_end_and_its_end_is_told() -> None:
    async with candidate() as (case, admissions), trio.open_nursery() as nursery:
        nursery.start_soon(case.run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        await trio.lowlevel.checkpoint_if_cancelled()
    [given] = admissions.given
    assert given.ended == case.unclaimed
    assert len(case.launcher.stops) == 1
