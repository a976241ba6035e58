"""Locks of EPIC runs live exactly as long as the processes that have them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.epic.errors import Busy, LockHeld
from forge_actors.domain.epic.ports import Holder
from forge_actors.edges.epic.locks import FileLocks
from forge_actors.edges.epic.root import FolderRoot
from forge_actors.edges.machine import lives, own_identity
from forge_actors.edges.node.agent.tree import FIRST_NAMESPACE
from tests.acceptance.epic_locks_program import MODULE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS = 60


class Other:
    """A process that is not our child."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.handle = os.pidfd_open(pid)
        self._poll = select.poll()
        self._poll.register(self.handle, select.POLLIN)

    def lives(self) -> bool:
        return not self._poll.poll(0)

    def kill(self) -> None:
        """Kill it, and wait until it has ended."""
        signal.pidfd_send_signal(self.handle, signal.SIGKILL)
        self.wait()

    def wait(self) -> None:
        assert self._poll.poll(SECONDS * 1000), f"{self.pid} has not ended"


class Run:
    """A controller with some workers, and the locks as another process sees them."""

    def __init__(self, folder: Path, workers: int, mode: str, stack: ExitStack) -> None:
        root = FolderRoot(str(folder))
        stack.callback(root.close)
        self.locks = FileLocks(root, own_identity(), lives, check=lambda root: None)
        command = [sys.executable, "-m", MODULE, str(folder), str(workers), mode]
        self.controller = stack.enter_context(
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        )
        #: The workers, and what each has started, which ends with the input of all.
        self.workers: list[Other] = []
        self.left: list[Other] = []
        stack.callback(self._end)
        assert self.controller.stdout is not None
        for line in self.controller.stdout:
            if line == b"ready\n":
                return
            worker, left = (Other(int(pid)) for pid in line.split())
            stack.callback(os.close, worker.handle)
            stack.callback(os.close, left.handle)
            self.workers.append(worker)
            self.left.append(left)
        raise AssertionError("the controller ended early")

    def _end(self) -> None:
        for worker in self.workers:
            if worker.lives():
                worker.kill()
        self.controller.kill()

    def has_controller(self) -> bool:
        try:
            self.locks.take_controller().close()
        except LockHeld:
            return True
        return False

    def busy(self) -> list[int]:
        """The issues whose locks are held."""
        found = []
        for issue in range(1, len(self.workers) + 1):
            seen = self.locks.is_busy(issue)
            try:
                self.locks.take_run(issue).close()
            except Busy:
                found.append(issue)
            assert seen == (issue in found)
        return found


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def test_after_a_kill_workers_keep_their_locks_and_what_they_started_does_not(
    tmp_path: Path, stack: ExitStack
) -> None:
    run = Run(tmp_path, 2, "wait", stack)
    assert run.has_controller()
    assert run.locks.controller() == Holder(run.controller.pid)
    assert run.busy() == [1, 2]
    # Nobody gets a second lock by exchanging what is in the repository.
    (tmp_path / "forge-actors").rename(tmp_path / "away")
    assert run.has_controller()
    (tmp_path / "forge-actors").mkdir()
    assert run.has_controller()
    (tmp_path / "forge-actors").rmdir()
    (tmp_path / "away").rename(tmp_path / "forge-actors")

    run.controller.kill()
    run.controller.wait()
    assert run.has_controller()
    # In another one the kernel lists no lock that a dead process took.
    if own_identity().namespace == FIRST_NAMESPACE:
        assert run.locks.controller() == Holder(run.controller.pid, ended=True)
    assert run.busy() == [1, 2]
    run.workers[0].kill()
    assert run.busy() == [2]
    assert run.has_controller()
    run.workers[1].kill()
    assert run.busy() == []
    assert not run.has_controller()
    assert run.locks.controller() is None
    # What they have started lives, and has neither lock.
    assert all(left.lives() for left in run.left)
    assert run.controller.stdin is not None
    run.controller.stdin.close()
    for left in run.left:
        left.wait()


@pytest.mark.parametrize(("mode", "kept"), [("fail", True), ("unlock", False)])
def test_a_controller_that_fails_leaves_its_lock_to_its_workers(
    tmp_path: Path, stack: ExitStack, mode: str, kept: bool
) -> None:
    """An unlock would take it from them too: what this test is for finds that."""
    run = Run(tmp_path, 1, mode, stack)
    assert run.controller.wait() == 1
    assert run.controller.stderr is not None
    # Its workers write there too, so it has no end yet.
    told = b"RuntimeError: the controller fails\n"
    assert any(line == told for line in run.controller.stderr)
    assert run.controller.stdout is not None
    assert run.controller.stdout.read() == (b"" if kept else b"unlocked\n")
    assert run.busy() == [1]
    assert run.has_controller() is kept
    run.workers[0].kill()
    assert run.busy() == []
    assert not run.has_controller()
