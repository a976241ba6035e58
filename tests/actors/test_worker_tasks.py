"""A worker has a task once it is of use; a short attempt is told of without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.actors.attempts import Attempts
from forge_actors.actors.tokens import Grant, Returned
from forge_actors.actors.worker import Worker
from forge_actors.domain.errors import MailboxClosed
from forge_actors.domain.launch import Receipt, WorkerExited, WorkerStarted
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.launcher import FakeLauncher
from tests.actors.kit import order_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.descriptors import Descriptors
    from forge_actors.domain.launch import Ending, LaunchOrder, ProcessIdentity
    from forge_actors.testing.launcher import FakeAttempt

pytestmark = pytest.mark.mock_clock


class LateAttempt:
    """One that nothing is heard of until `settle`."""

    def __init__(self, running: FakeAttempt) -> None:
        self._running = running
        self._known = trio.Event()
        self._notify: Callable[[], object] = lambda: None

    @property
    def receipt(self) -> Receipt | None:
        return self._running.receipt

    async def started(self) -> ProcessIdentity | None:
        await self._known.wait()
        return await self._running.started()

    def once_settled(self, notify: Callable[[], object]) -> bool:
        self._notify = notify
        return True

    def settle(self) -> None:
        self._known.set()
        self._notify()

    async def exited(self) -> Receipt:
        return await self._running.exited()

    def stop(self, *, grace: float | None = None, ending: Ending = "stop") -> None:
        self._running.stop(grace=grace, ending=ending)

    def pause(self) -> None:
        self._running.pause()

    def resume(self) -> None:
        self._running.resume()


class LateLauncher(FakeLauncher):
    def __init__(self) -> None:
        super().__init__()
        self.late: dict[str, LateAttempt] = {}

    def launch(  # type: ignore[override]
        self, order: LaunchOrder, descriptors: Descriptors | None = None
    ) -> LateAttempt:
        late = LateAttempt(super().launch(order, descriptors))
        self.late[order.job] = late
        return late


class Owner:
    """A repository that has started one attempt, in a nursery of its own."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.nursery = nursery
        self.launcher = LateLauncher()
        self.told: list[type] = []
        self.unclaimed: list[Receipt] = []
        self.closed = False
        self.grant = Grant("g1", "repo", ("workers",), self._returned)
        tools = self.launcher, FakeClock(), self.unclaimed.append
        self.worker = Worker(self.grant, self, *tools)
        self.attempts = Attempts(nursery)
        self.attempts.add(self.worker, order_of("job"))
        self.attempts.start("job")

    def tell(self, message: WorkerStarted | WorkerExited) -> None:
        if self.closed:
            raise MailboxClosed
        self.told.append(type(message))

    def _returned(self, message: Returned) -> None:
        self.told.append(type(message))

    @property
    def tasks(self) -> int:
        return len(self.nursery.child_tasks)

    def finish(self) -> None:
        self.launcher.finish("job")
        self.launcher.late["job"].settle()


async def test_a_short_attempt_is_told_of_without_a_task() -> None:
    async with trio.open_nursery() as nursery:
        owner = Owner(nursery)
        await trio.testing.wait_all_tasks_blocked()
        owner.finish()
        assert owner.told == [WorkerExited], "in the same turn of the loop"
        await trio.testing.wait_all_tasks_blocked()
        owner.attempts.ended("job", 1)
        owner.attempts.release()
        assert owner.told == [WorkerExited, Returned]
        assert owner.tasks == 0


async def test_an_attempt_that_runs_on_gets_its_task() -> None:
    async with trio.open_nursery() as nursery:
        owner = Owner(nursery)
        owner.launcher.late["job"].settle()
        assert owner.tasks == 1
        await trio.testing.wait_all_tasks_blocked()
        assert owner.told == [WorkerStarted]
        owner.launcher.finish("job")
        await trio.testing.wait_all_tasks_blocked()
        assert owner.told == [WorkerStarted, WorkerExited]
        assert owner.tasks == 0


async def test_a_short_attempt_without_an_owner_is_kept_for_the_next_one() -> None:
    async with trio.open_nursery() as nursery:
        owner = Owner(nursery)
        owner.closed = True
        owner.finish()
        assert [receipt.exit_code for receipt in owner.unclaimed] == [0]
        assert owner.told == [Returned]


async def test_what_has_no_task_yet_is_ended_when_its_owner_is_killed() -> None:
    async with trio.open_nursery() as nursery:
        owner = Owner(nursery)
        nursery.cancel_scope.cancel()
        owner.closed = True
        owner.attempts.close()
        assert owner.tasks == 1
    assert [stop.job for stop in owner.launcher.stops] == ["job"]
    assert [receipt.ending for receipt in owner.unclaimed] == ["stop"]
    assert owner.grant.returned


async def test_what_has_no_task_yet_runs_on_when_its_owner_lets_go() -> None:
    async with trio.open_nursery() as nursery:
        owner = Owner(nursery)
        owner.attempts.detach()
        owner.attempts.close()
    assert owner.launcher.stops == []
    assert owner.grant.ownerless
    owner.finish()  # whoever has adopted it is told
    assert (owner.told, owner.unclaimed) == ([], [])


async def test_a_task_that_it_has_tells_the_end_and_nobody_else() -> None:
    async with trio.open_nursery() as nursery:
        owner = Owner(nursery)
        owner.attempts.close()
        await trio.testing.wait_all_tasks_blocked()
        owner.finish()
        await trio.testing.wait_all_tasks_blocked()
        assert owner.told == [WorkerExited]
