"""A worker of a job that wants a worktree: saved, made, then launched."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.actors.isolating import Isolating
from forge_actors.actors.tokens import Grant, Returned
from forge_actors.actors.worker import Worker
from forge_actors.domain.branches import BranchNames
from forge_actors.domain.errors import MailboxClosed
from forge_actors.domain.launch import Receipt, Secrets, WorkerExited, WorkerStarted
from forge_actors.domain.worktrees import LeftLocks, Worktree, WorktreeWanted
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.launcher import FakeLauncher
from forge_actors.testing.made_changes import job, repository
from forge_actors.testing.store import MemoryStore
from forge_actors.testing.worktrees import HEAD, FakeWorktrees
from tests.actors.kit import order_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from forge_actors.domain.launch import LaunchOrder

pytestmark = pytest.mark.mock_clock

FOLDER = "/home/worktrees/repo/job"
WANTED = WorktreeWanted(
    job="job",
    repo="repo",
    common_dir="/app/.git",
    folder=FOLDER,
    path="worktrees/repo/job",
    ceiling="/home/worktrees",
    cwd="/app",
    base=None,
    pattern=None,
    default_pattern="forge/{job}",
    names=BranchNames("job", "app", "name", "2026-01-31"),
    seconds=60.0,
)


class Case:
    """A worker with a store and worktrees of its own, and what it tells."""

    def __init__(self, store: MemoryStore, worktrees: FakeWorktrees) -> None:
        self.store = store
        self.worktrees = worktrees
        self.launcher = FakeLauncher()
        self.told: list[WorkerStarted | WorkerExited | Returned] = []
        self.unclaimed: list[Receipt] = []
        self.closed = False
        self.order: LaunchOrder = structs.replace(
            order_of("job"), wanted=WANTED, env={"A": "b", "GIT_DIR": "/x"}
        )
        self.grant = Grant("g1", "repo", ("workers",), self.told.append)
        clock = FakeClock()
        self.worker = Worker(
            self.grant,
            self,
            self.launcher,
            clock,
            self.unclaimed.append,
            Isolating(store, worktrees, clock),
        )

    def tell(self, message: WorkerStarted | WorkerExited) -> None:
        if self.closed:
            raise MailboxClosed
        self.told.append(message)

    async def run(self) -> None:
        self.worker.launch(self.order)
        await self.worker.run(self.order)

    @property
    def known(self) -> Worktree:
        known = self.store.worktree("job")
        assert known is not None
        return known

    @property
    def kinds(self) -> list[str]:
        """The events of worktrees that are durable."""
        kinds = [event.kind for event in self.store.durable.events]
        return [kind for kind in kinds if kind.startswith("worktree_")]

    @property
    def receipt(self) -> Receipt:
        [exited] = [told for told in self.told if isinstance(told, WorkerExited)]
        return exited.receipt


@asynccontextmanager
async def opened(worktrees: FakeWorktrees | None = None) -> AsyncGenerator[Case, None]:
    async with MemoryStore().open() as store:
        await store.save([repository(), job()]).wait()
        yield Case(store, worktrees or FakeWorktrees())


async def test_it_is_launched_in_its_worktree_when_that_is_ready() -> None:
    async with opened() as case, trio.open_nursery() as nursery:
        case.worktrees.held = trio.Event()
        nursery.start_soon(case.run)
        await trio.testing.wait_all_tasks_blocked()
        assert case.launcher.orders == []
        assert case.kinds == ["worktree_making"], "saved before its folder is begun"
        case.worktrees.held.set()
        await trio.testing.wait_all_tasks_blocked()
        assert case.kinds == ["worktree_making", "worktree_made"]
        for event in case.store.durable.events:
            if event.kind in case.kinds:
                assert event.data["path"] == case.order.wanted.path
                assert event.data["branch"] in case.worktrees.checkouts.branches
                assert event.job == "job"
        [order] = case.launcher.orders
        assert order.wanted is None
        assert order.cwd == FOLDER
        assert order.worktree is not None
        assert order.worktree.root == FOLDER
        assert order.env == {"A": "b", "GIT_CEILING_DIRECTORIES": "/home/worktrees"}
        case.launcher.finish("job", exit_code=0)
    assert case.receipt.exit_code == 0
    known = case.known
    assert (known.state, known.branch) == ("ready", "forge/job")
    assert known.base_commit == HEAD


async def test_a_secret_leads_git_nowhere_either() -> None:
    async with opened() as case, trio.open_nursery() as nursery:
        secrets = Secrets({"GIT_WORK_TREE": "/x", "TOKEN": "t"})
        case.order = structs.replace(case.order, secrets=secrets)
        nursery.start_soon(case.run)
        await trio.testing.wait_all_tasks_blocked()
        [order] = case.launcher.orders
        assert dict(order.secrets) == {"TOKEN": "t"}
        assert "t" not in repr(order.secrets).split()
        case.launcher.finish("job", exit_code=0)


async def test_what_cannot_be_made_ends_the_attempt_and_leaves_nothing() -> None:
    async with opened() as case:
        case.worktrees.failure = "the disk is full"
        await case.run()
        assert case.receipt.ending == "spawn"
        assert case.receipt.error == (
            "the disk is full; submit it with --no-isolate to run it in the checkout,"
            " one at a time"
        )
        assert case.launcher.orders == []
        assert case.worktrees.checkouts.branches == {}
        assert case.worktrees.checkouts.folders == {}
        assert (case.known.state, case.known.reason) == ("removed", "the disk is full")
        await case.store.save([]).wait()
        assert case.kinds == ["worktree_making", "worktree_failed"]


async def test_after_a_failure_the_next_attempt_begins_anew() -> None:
    async with opened() as case:
        case.worktrees.failure = "the disk is full"
        await case.run()
        again = Case(case.store, case.worktrees)
        again.worktrees.failure = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(again.run)
            await trio.testing.wait_all_tasks_blocked()
            again.launcher.finish("job", exit_code=0)
        assert again.receipt.exit_code == 0
        assert again.known.state == "ready"


async def test_a_stop_while_it_is_made_takes_it_back() -> None:
    async with opened() as case, trio.open_nursery() as nursery:
        case.worktrees.held = trio.Event()
        nursery.start_soon(case.run)
        await trio.testing.wait_all_tasks_blocked()
        case.worker.stop(ending="cancel")
        await trio.testing.wait_all_tasks_blocked()
        assert case.receipt.ending == "stop"
        assert case.launcher.orders == []
        assert case.worktrees.checkouts.branches == {}
        assert case.known.state == "removed"


async def test_a_stop_before_it_is_begun_makes_nothing() -> None:
    async with opened() as case:
        case.worker.stop()
        await case.run()
        assert case.receipt.ending == "stop"
        assert case.store.worktree("job") is None
        assert case.worktrees.checkouts.branches == {}


@pytest.mark.parametrize("detached", [True, False])
async def test_a_worker_that_is_killed_leaves_what_the_next_one_goes_on_with(
    detached: bool,
) -> None:
    async with opened() as case:
        case.worktrees.held = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(case.run)
            await trio.testing.wait_all_tasks_blocked()
            if detached:
                case.worker.detach()
            nursery.cancel_scope.cancel()
        # Only of what may run elsewhere the tokens stay taken.
        assert [type(told) for told in case.told] == [Returned] * (not detached)
        assert [receipt.ending for receipt in case.unclaimed] == ["stop"] * (
            not detached
        )
        assert case.known.state == "making"
        branches = dict(case.worktrees.checkouts.branches)
        assert list(branches) == ["forge/job"]
        again = Case(case.store, FakeWorktrees(case.worktrees.checkouts))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(again.run)
            await trio.testing.wait_all_tasks_blocked()
            again.launcher.finish("job", exit_code=0)
        assert again.known.state == "ready"
        assert again.worktrees.checkouts.branches == branches


async def test_the_next_attempt_enters_the_same_worktree() -> None:
    async with opened() as case:
        for attempt in (1, 2):
            now = Case(case.store, case.worktrees)
            now.order = structs.replace(now.order, attempt=attempt)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(now.run)
                await trio.testing.wait_all_tasks_blocked()
                now.launcher.finish("job", exit_code=1)
        assert case.kinds == ["worktree_making", "worktree_made"]
        case.worktrees.checkouts.folders[FOLDER].branch = "other"
        last = Case(case.store, case.worktrees)
        await last.run()
        assert last.receipt.error == "its worktree is at other"
        assert last.known.state == "ready", "what is in it is not taken back"


async def test_one_that_is_being_removed_is_not_entered() -> None:
    async with opened() as case:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(case.run)
            await trio.testing.wait_all_tasks_blocked()
            case.launcher.finish("job", exit_code=1)
        removing = structs.replace(case.known, state="removing")
        case.store._pending.worktrees["job"] = removing
        last = Case(case.store, case.worktrees)
        await last.run()
        assert last.receipt.error is not None
        assert "is being removed" in last.receipt.error


async def test_a_pause_before_the_launch_lets_it_begin_paused() -> None:
    async with opened() as case, trio.open_nursery() as nursery:
        case.worktrees.held = trio.Event()
        nursery.start_soon(case.run)
        await trio.testing.wait_all_tasks_blocked()
        case.worker.suspend(True)
        case.worktrees.held.set()
        await trio.testing.wait_all_tasks_blocked()
        assert [each.key for each in case.launcher.paused] == [("job", 1)]
        case.worker.suspend(False)
        case.launcher.finish("job", exit_code=0)


class SomeLocks:
    """The port `Locks`: what there is to be found, and where it was looked for."""

    def __init__(self, left: LeftLocks) -> None:
        self.left = left
        self.looked: list[tuple[str, float, float]] = []

    def remove_left(self, folder: str, since: float, until: float) -> LeftLocks:
        self.looked.append((folder, since, until))
        return self.left


@pytest.mark.parametrize("code", [0, 1])
async def test_locks_are_looked_for_when_a_job_did_not_end_well(code: int) -> None:
    locks = SomeLocks(LeftLocks(("/app/x.lock",), (("/app/y.lock", "it is older"),)))
    async with opened() as case, trio.open_nursery() as nursery:
        case.order = structs.replace(case.order, wanted=None)
        isolating = Isolating(case.store, case.worktrees, FakeClock(), locks)
        case.worker._isolating = isolating
        nursery.start_soon(case.run)
        await trio.testing.wait_all_tasks_blocked()
        case.launcher.finish("job", exit_code=code)
        await trio.testing.wait_all_tasks_blocked()
        receipt = case.receipt
        await case.store.save([]).wait()
        told = {
            event.kind: event.data
            for event in case.store.durable.events
            if event.kind.startswith("lock_")
        }
        if code == 0:
            assert (locks.looked, told) == ([], {})
        else:
            assert locks.looked == [("/", receipt.started_at, receipt.ended_at)]
            assert told["lock_removed"] == {"path": "/app/x.lock"}
            assert told["lock_kept"] == {"path": "/app/y.lock", "reason": "it is older"}
