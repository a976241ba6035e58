"""The worker: one exit event an attempt, and the tree gone before the tokens return."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.actors.tokens import Grant, Returned
from forge_actors.actors.worker import KILL_MARGIN, Worker
from forge_actors.domain.errors import MailboxClosed
from forge_actors.domain.launch import Receipt, WorkerExited, WorkerStarted
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.launcher import FakeLauncher, Outcome
from tests.actors.kit import order_of

if TYPE_CHECKING:
    from forge_actors.domain.launch import LaunchOrder

pytestmark = pytest.mark.mock_clock


class Owner:
    """A repository that writes down what it is told, and when the tokens came back."""

    def __init__(self) -> None:
        self.told: list[WorkerStarted | WorkerExited | Returned] = []
        self.unclaimed: list[Receipt] = []
        self.closed = False

    def tell(self, message: WorkerStarted | WorkerExited) -> None:
        if self.closed:
            raise MailboxClosed
        self.told.append(message)

    @property
    def kinds(self) -> list[type]:
        return [type(message) for message in self.told]


class Case:
    def __init__(self, launcher: FakeLauncher) -> None:
        self.owner = Owner()
        self.launcher = launcher
        self.order: LaunchOrder = order_of("job")
        self.grant = Grant("g1", "repo", ("workers",), self.owner.told.append)
        self.worker = Worker(
            self.grant,
            self.owner,
            launcher,
            FakeClock(),
            self.owner.unclaimed.append,
        )

    async def run(self) -> None:
        self.worker.launch(self.order)
        await self.worker.run(self.order)


async def test_a_worker_tells_start_and_exit_once_and_gives_back_when_recorded() -> (
    None
):
    case = Case(FakeLauncher())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(case.run)
        await trio.testing.wait_all_tasks_blocked()
        assert case.owner.kinds == [WorkerStarted]
        case.launcher.finish("job", exit_code=3)
    assert case.owner.kinds == [WorkerStarted, WorkerExited]
    case.worker.release()  # its repository has recorded the exit
    case.worker.release()
    assert case.owner.kinds == [WorkerStarted, WorkerExited, Returned]
    exited = case.owner.told[1]
    assert isinstance(exited, WorkerExited)
    assert (exited.job, exited.attempt) == ("job", 1)
    assert exited.receipt.exit_code == 3
    assert case.owner.unclaimed == []


async def test_the_start_of_what_has_ended_is_told_by_its_end() -> None:
    case = Case(FakeLauncher(auto=lambda _: Outcome(exit_code=0)))
    await case.run()
    assert case.owner.kinds == [WorkerExited]
    exited = case.owner.told[0]
    assert isinstance(exited, WorkerExited)
    assert exited.receipt.identity is not None


async def test_what_could_not_start_tells_only_its_exit() -> None:
    case = Case(FakeLauncher(auto=lambda _: Outcome(spawn_error="no such file")))
    await case.run()
    assert case.owner.kinds == [WorkerExited]
    exited = case.owner.told[0]
    assert isinstance(exited, WorkerExited)
    assert exited.receipt.ending == "spawn"


async def test_a_worker_stopped_before_its_launch_launches_nothing() -> None:
    case = Case(FakeLauncher())
    case.worker.stop()
    await case.run()
    assert case.launcher.orders == []
    assert case.owner.kinds == [WorkerExited]
    exited = case.owner.told[0]
    assert isinstance(exited, WorkerExited)
    assert (exited.receipt.ending, exited.receipt.started_at) == ("stop", None)
    assert exited.receipt.fence == case.order.fence
    assert exited.receipt.error


async def test_a_stop_reaches_the_process_with_its_grace() -> None:
    case = Case(FakeLauncher(obeys_stop=False))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(case.run)
        await trio.testing.wait_all_tasks_blocked()
        case.worker.stop()
        case.worker.stop(3.0)
        assert [stop.grace for stop in case.launcher.stops] == [None, 3.0]
        assert case.owner.kinds == [WorkerStarted]  # it is gone only when it is gone
        case.launcher.finish("job", signal="SIGKILL", ending="stop")
    assert case.owner.kinds == [WorkerStarted, WorkerExited]


async def test_a_launcher_that_is_down_is_an_exit_that_says_so() -> None:
    case = Case(FakeLauncher())
    case.launcher.go_down("the node agent ended 5 times")
    await case.run()
    assert case.owner.kinds == [WorkerExited]
    exited = case.owner.told[0]
    assert isinstance(exited, WorkerExited)
    assert exited.receipt.ending == "stop"
    assert exited.receipt.error == "the node agent ended 5 times"


async def test_an_order_with_a_problem_is_launched_nowhere_and_says_why() -> None:
    case = Case(FakeLauncher())
    case.order = structs.replace(case.order, problem="there is no secret 'TOKEN'")
    await case.run()
    assert case.launcher.orders == []
    assert case.owner.kinds == [WorkerExited]
    exited = case.owner.told[0]
    assert isinstance(exited, WorkerExited)
    assert exited.receipt.ending == "spawn"
    assert exited.receipt.error == "there is no secret 'TOKEN'"


async def test_a_launcher_that_goes_down_loses_the_attempt() -> None:
    case = Case(FakeLauncher())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(case.run)
        await trio.testing.wait_all_tasks_blocked()
        case.launcher.go_down()
    exited = case.owner.told[1]
    assert isinstance(exited, WorkerExited)
    assert exited.receipt.ending == "lost"


async def test_kill_ends_the_tree_and_keeps_the_receipt() -> None:
    case = Case(FakeLauncher(obeys_stop=False))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(case.run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await trio.sleep(case.order.grace)
        assert case.launcher.stops == [("job", 1, 10.0, "stop")]
        assert case.owner.kinds == [WorkerStarted]  # the tokens wait for the tree
        case.launcher.finish("job", signal="SIGKILL", ending="stop")
    assert case.owner.kinds == [WorkerStarted, Returned]
    [receipt] = case.owner.unclaimed
    assert (receipt.job, receipt.attempt, receipt.signal) == ("job", 1, "SIGKILL")


async def test_kill_gives_up_on_a_tree_that_does_not_end() -> None:
    case = Case(FakeLauncher(obeys_stop=False))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(case.run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert trio.current_time() == pytest.approx(case.order.grace + KILL_MARGIN)
    assert case.owner.unclaimed == []
    assert case.grant.returned


async def test_an_exit_without_an_owner_is_kept_for_the_next_one() -> None:
    case = Case(FakeLauncher())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(case.run)
        await trio.testing.wait_all_tasks_blocked()
        case.owner.closed = True
        case.launcher.finish("job")
    assert [receipt.exit_code for receipt in case.owner.unclaimed] == [0]
    assert case.owner.kinds == [WorkerStarted, Returned]


async def test_a_start_without_an_owner_is_no_error() -> None:
    case = Case(FakeLauncher(auto=lambda _: Outcome()))
    case.owner.closed = True
    await case.run()
    assert [receipt.ending for receipt in case.owner.unclaimed] == ["exit"]
    assert case.grant.returned
