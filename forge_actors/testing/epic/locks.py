"""Locks of EPIC runs in memory: the port `Locks` without a file.

    kernel = FakeKernel()
    locks = FakeLocks(kernel, pid=1)
    foreign = FakeLocks(kernel, pid=2)  # another process in the same repository
    worker = kernel.inherit(locks.take_controller().share())
    worker.end()  # a process that inherited it has ended
    locks.die()  # this one is killed

They keep the contract of `locks_contract.py`, which the real ones keep too.
"""

from __future__ import annotations

from forge_actors.domain.epic.errors import Busy, LockHeld, StateError
from forge_actors.domain.epic.ports import Holder
from forge_actors.domain.github.places import MAX_NUMBER

CONTROLLER = "controller"


class _Opened:
    """One open file description; it is closed with its last descriptor."""

    def __init__(self, kernel: FakeKernel, name: str, pid: int) -> None:
        self.kernel = kernel
        self.name = name
        self.pid = pid
        self.descriptors: set[int] = set()

    def add(self) -> int:
        self.kernel.last += 1
        self.descriptors.add(self.kernel.last)
        self.kernel.opened[self.kernel.last] = self
        return self.kernel.last

    def close(self, descriptor: int) -> None:
        self.descriptors.remove(descriptor)
        del self.kernel.opened[descriptor]
        if not self.descriptors:
            self.unlock()

    def unlock(self) -> None:
        if self.kernel.held.get(self.name) is self:
            del self.kernel.held[self.name]


class FakeKernel:
    """What all processes of one machine share: who has which lock."""

    def __init__(self) -> None:
        #: By the name of the lock: `controller`, or the number of an issue.
        self.held: dict[str, _Opened] = {}
        self.opened: dict[int, _Opened] = {}
        #: Issues whose lock, and so whose folder, was made.
        self.made: set[int] = set()
        #: Issues in whose folder there is more than the lock.
        self.used: set[int] = set()
        #: Locks that were given back by an explicit unlock.
        self.unlocked: list[str] = []
        #: What was taken and let go, as `+controller`, `-12`.
        self.log: list[str] = []
        #: Which process says that it is the controller.
        self.record: int | None = None
        #: Processes that have ended.
        self.dead: set[int] = set()
        #: The number of the descriptor that was opened last.
        self.last = 2

    def take(self, name: str, pid: int) -> _Opened | None:
        """Lock it on a description of its own; None if it is locked."""
        if name in self.held:
            return None
        opened = self.held[name] = _Opened(self, name, pid)
        return opened

    def inherit(self, descriptor: int) -> Inherited:
        """Have another process inherit a descriptor."""
        return Inherited(self.opened[descriptor])


class Inherited:
    """A descriptor in another process."""

    def __init__(self, opened: _Opened) -> None:
        self._opened = opened
        self._descriptor: int | None = opened.add()

    def end(self) -> None:
        """The process ends, or closes it."""
        if self._descriptor is not None:
            self._opened.close(self._descriptor)
            self._descriptor = None


class _Held:
    """A lock that this process has."""

    def __init__(self, locks: FakeLocks, opened: _Opened) -> None:
        self._kernel = locks.kernel
        self._locks = locks
        self._opened = opened
        self._descriptor: int | None = opened.add()
        self._shared = False
        self._kernel.log.append(f"+{opened.name}")

    def _share(self) -> int:
        if self._descriptor is None:
            raise StateError("the lock was let go of")
        self._shared = True
        return self._descriptor

    def drop(self) -> bool:
        """Close it as the kernel does; whether it was still to be closed."""
        if self._descriptor is None:
            return False
        self._opened.close(self._descriptor)
        self._descriptor = None
        self._kernel.log.append(f"-{self._opened.name}")
        return True


class FakeControllerLock(_Held):
    """The port `ControllerLock`."""

    def share(self) -> int:
        return self._share()

    def close(self) -> None:
        if self.drop() and self._kernel.record == self._locks.pid:
            self._kernel.record = None


class FakeRunLock(_Held):
    """The port `RunLock`."""

    @property
    def issue(self) -> int:
        return int(self._opened.name)

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def hand_off(self) -> int:
        return self._share()

    def close(self) -> None:
        if self._descriptor is not None and not self._shared:
            self._opened.unlock()
            self._kernel.unlocked.append(self._opened.name)
        if self.drop():
            self._locks.open_run = None
            if not self._shared and self.issue not in self._kernel.used:
                self._kernel.made.discard(self.issue)


class FakeLocks:
    """The port `Locks` of one process. It takes one lock of an issue at a time."""

    def __init__(self, kernel: FakeKernel | None = None, *, pid: int = 1) -> None:
        self.kernel = FakeKernel() if kernel is None else kernel
        self.pid = pid
        #: Raised by `take_controller`, as by a file system that keeps no locks.
        self.refusal: Exception | None = None
        #: Issues whose lock cannot be taken, and why.
        self.problems: dict[int, str] = {}
        self.open_run: FakeRunLock | None = None
        self._controllers: list[FakeControllerLock] = []

    def take_controller(self) -> FakeControllerLock:
        opened = self.kernel.take(CONTROLLER, self.pid)
        if opened is None:
            raise LockHeld(f"pid {self.kernel.held[CONTROLLER].pid} has it")
        if self.refusal is not None:
            opened.unlock()
            raise self.refusal
        self.kernel.record = self.pid
        self._controllers.append(FakeControllerLock(self, opened))
        return self._controllers[-1]

    def take_run(self, issue: int) -> FakeRunLock:
        self._look_at(issue)
        self.kernel.made.add(issue)
        opened = self.kernel.take(str(issue), self.pid)
        if opened is None:
            raise Busy(f"another process has issue {issue} now")
        assert self.open_run is None, "one lock of an issue at a time"
        self.open_run = FakeRunLock(self, opened)
        return self.open_run

    def controller(self) -> Holder | None:
        record = self.kernel.record
        if record is not None and record not in self.kernel.dead:
            return Holder(record)
        return Holder(record, ended=True) if CONTROLLER in self.kernel.held else None

    def is_busy(self, issue: int) -> bool:
        self._look_at(issue)
        return str(issue) in self.kernel.held

    def die(self) -> None:
        """End this process as a kill does: what others have inherited stays held."""
        for held in (*self._controllers, self.open_run):
            if held is not None:
                held.drop()
        self.open_run = None
        self.kernel.dead.add(self.pid)

    def _look_at(self, issue: int) -> None:
        if not 0 < issue < MAX_NUMBER:
            raise StateError(f"{issue} is no number of an issue")
        if issue in self.problems:
            raise StateError(self.problems[issue])
