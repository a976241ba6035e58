"""Whatever processes do with locks, those in memory say what the real ones say."""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from forge_actors.domain.epic.errors import Busy, LockHeld, StateError
from forge_actors.domain.epic.places import namespace
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.edges.epic.locks import FileLocks
from forge_actors.edges.epic.root import FolderRoot
from forge_actors.testing.epic.locks import FakeKernel, FakeLocks
from tests.examples import examples

if TYPE_CHECKING:
    from collections.abc import Callable

PROCESSES = (1, 2)
ISSUES = (7, 8)
#: Syncs cost nothing there.
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


class Real:
    """The locks of a folder; what a process does by dying is done to it."""

    def __init__(self, stack: ExitStack) -> None:
        self.folder = stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY))
        self.root = FolderRoot(self.folder)
        stack.callback(self.root.close)
        self.dead: set[int] = set()

    def process(self, pid: int) -> FileLocks:
        def lives(process: ProcessIdentity) -> bool:
            return process.pid not in self.dead

        me = ProcessIdentity("boot", pid, 1)
        return FileLocks(self.root, me, lives, check=lambda root: None)

    def inherit(self, descriptor: int) -> int:
        return os.dup(descriptor)

    def end(self, worker: int) -> None:
        os.close(worker)

    def die(self, pid: int, locks: FileLocks, held: list[Any]) -> None:
        self.dead.add(pid)
        for each in held:
            each._descriptor.close()

    def has_folder(self, issue: int) -> bool:
        return os.path.exists(os.path.join(self.folder, *namespace(issue)))


class Memory:
    """The locks for tests."""

    def __init__(self, stack: ExitStack) -> None:
        self.kernel = FakeKernel()

    def process(self, pid: int) -> FakeLocks:
        return FakeLocks(self.kernel, pid=pid)

    def inherit(self, descriptor: int) -> Any:
        return self.kernel.inherit(descriptor)

    def end(self, worker: Any) -> None:
        worker.end()

    def die(self, pid: int, locks: FakeLocks, held: list[Any]) -> None:
        locks.die()

    def has_folder(self, issue: int) -> bool:
        return issue in self.kernel.made


class Told:
    """What processes did in one world, and what came of it."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.alive = dict.fromkeys(PROCESSES)
        self.locks = {pid: world.process(pid) for pid in PROCESSES}
        #: By process: what it has, and what it may close once more.
        self.controllers: dict[int, Any] = {}
        self.runs: dict[int, Any] = {}
        self.workers: list[Any] = []

    def do(self, act: str, pid: int, issue: int) -> object:
        if act == "end":
            if self.workers:
                self.world.end(self.workers.pop(issue % len(self.workers)))
            return None
        if pid not in self.alive:
            return None
        does: dict[str, Callable[[int, int], object]] = {
            "controller": self._controller,
            "run": self._run,
            "share": self._share,
            "hand off": self._hand_off,
            "close controller": lambda pid, _: self._close(self.controllers, pid),
            "close run": lambda pid, _: self._close(self.runs, pid),
            "die": self._die,
        }
        return does[act](pid, issue)

    def _controller(self, pid: int, issue: int) -> object:
        try:
            self.controllers[pid] = self.locks[pid].take_controller()
        except LockHeld:
            return "held"
        return "taken"

    def _run(self, pid: int, issue: int) -> object:
        run = self.runs.get(pid)
        if run is not None and run.held:
            return None  # one at a time
        try:
            self.runs[pid] = self.locks[pid].take_run(issue)
        except Busy:
            return "busy"
        return "taken"

    def _share(self, pid: int, issue: int) -> None:
        lock = self.controllers.get(pid)
        if lock is None:
            return
        try:
            descriptor = lock.share()
        except StateError:  # it was let go of
            return
        self.workers.append(self.world.inherit(descriptor))

    def _hand_off(self, pid: int, issue: int) -> None:
        run = self.runs.get(pid)
        if run is not None and run.held:
            self.workers.append(self.world.inherit(run.hand_off()))

    def _close(self, held: dict[int, Any], pid: int) -> None:
        if pid in held:
            held[pid].close()

    def _die(self, pid: int, issue: int) -> None:
        del self.alive[pid]
        both = (self.controllers.get(pid), self.runs.get(pid))
        held = [each for each in both if each is not None]
        self.world.die(pid, self.locks[pid], held)

    def seen(self) -> object:
        """What somebody else sees who changes nothing."""
        other = self.world.process(99)
        return (
            other.controller(),
            [other.is_busy(issue) for issue in ISSUES],
            [self.world.has_folder(issue) for issue in ISSUES],
        )

    def close(self) -> None:
        for pid in list(self.alive):
            self._die(pid, 0)
        while self.workers:
            self.world.end(self.workers.pop())


ACTS = (
    *("controller", "run", "share", "hand off"),
    *("close controller", "close run", "end", "die"),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(ACTS), st.sampled_from(PROCESSES), st.sampled_from(ISSUES)
    ),
    max_size=25,
)


@settings(max_examples=examples(40))
@given(STEPS)
@example([("run", 2, 8), ("die", 2, 7), ("run", 1, 8), ("close run", 1, 7)])
def test_locks_in_memory_are_like_those_of_the_kernel(
    steps: list[tuple[str, int, int]],
) -> None:
    with ExitStack() as stack:
        real, fake = Told(Real(stack)), Told(Memory(stack))
        stack.callback(real.close)
        stack.callback(fake.close)
        for step in steps:
            assert real.do(*step) == fake.do(*step), step
            assert real.seen() == fake.seen(), step


def test_of_many_who_take_and_remove_a_lock_one_has_it() -> None:
    """Each lets its folder go, as nothing is in it, while others take the lock."""
    inside: list[int] = []
    faults: list[str] = []

    def take(number: int, locks: FileLocks, times: int) -> None:
        while times and not faults:
            try:
                taken = locks.take_run(7)
            except Busy:
                continue
            except StateError as error:
                faults.append(str(error))
                return
            inside.append(number)
            os.sched_yield()
            if inside != [number]:
                faults.append(f"{inside} have it")
            inside.clear()
            taken.close()
            times -= 1

    with ExitStack() as stack:
        real = Real(stack)
        threads = [
            threading.Thread(target=take, args=(number, real.process(number), 60))
            for number in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert faults == []
        assert not real.has_folder(7)
