"""The locks of a repository: the controller's on its git common directory, and one of
each issue.

The controller's is on the folder itself, so nobody gets a second one by removing or
exchanging what is in it. No code here gives it back: it ends with the last descriptor,
of a worker or ours. Our file in the folder only tells who has it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from forge_actors.domain.epic.errors import (
    Busy,
    LockHeld,
    StateError,
    UnsupportedFilesystem,
)
from forge_actors.domain.epic.kernel_locks import exclusive_holder
from forge_actors.domain.epic.places import CONTROLLER, RUN_LOCK, run_lock, within
from forge_actors.domain.epic.ports import Holder
from forge_actors.domain.github.places import MAX_NUMBER
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.edges.epic import flock
from forge_actors.edges.epic.descriptor import Descriptor
from forge_actors.edges.epic.filesystem import check_filesystem
from forge_actors.edges.epic.mounted import mount_of, read_mounts

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.epic.places import Place
    from forge_actors.edges.epic.root import FolderRoot

#: Bytes of the record of the controller, and of the kernel's list of locks.
MAX_RECORD = 4096
MAX_KERNEL = 1 << 22
#: Times that a lock is opened anew as its file was removed meanwhile.
TRIES = 8


class FileControllerLock:
    """The port `ControllerLock`."""

    def __init__(self, descriptor: int, forget: Callable[[], None]) -> None:
        """`forget` removes what tells others that we have it."""
        self._descriptor = Descriptor(descriptor)
        self._forget = forget

    def share(self) -> int:
        return self._descriptor.number

    def close(self) -> None:
        if self._descriptor.is_open:
            try:
                self._forget()
            finally:
                self._descriptor.close()


class FileRunLock:
    """The port `RunLock`."""

    def __init__(
        self, root: FolderRoot, issue: int, descriptor: int, place: Place
    ) -> None:
        self._root = root
        self._issue = issue
        self._place = place
        self._descriptor = Descriptor(descriptor)
        self._handed_off = False

    @property
    def issue(self) -> int:
        return self._issue

    @property
    def held(self) -> bool:
        return self._descriptor.is_open

    def hand_off(self) -> int:
        number = self._descriptor.number
        self._handed_off = True
        return number

    def close(self) -> None:
        if not self._descriptor.is_open:
            return
        try:
            if not self._handed_off:
                self._clear()
                # A process that is just being started has a copy of every descriptor
                # until its program begins: it must not keep this one as long.
                flock.unlock(self._descriptor.number)
        finally:
            self._descriptor.close()

    def _clear(self) -> None:
        """Remove the folder if it has nothing but the lock, while nobody else can use
        it: who has opened the lock by now finds that it is not there any more."""
        folder = self._place[:-1]
        with suppress(StateError):  # it is a little untidy, and no problem
            found = self._root.entries(folder) or []
            if [each.name for each in found] == [RUN_LOCK]:
                self._root.remove(self._place)
                self._root.remove_folder(folder)


class FileLocks:
    """The port `Locks` of the repository whose git common directory the root is."""

    def __init__(
        self,
        root: FolderRoot,
        me: ProcessIdentity,
        lives: Callable[[ProcessIdentity], bool],
        *,
        check: Callable[[FolderRoot], None] = check_filesystem,
        folder: Place = (),
    ) -> None:
        """`lives` tells whether a process still runs; `check` whether locks hold where
        the root is. `folder` keeps issues apart from those of other graphs; the
        controller is the same for all."""
        self._root = root
        self._folder = folder
        self._record = msgspec.json.encode(me)
        self._lives = lives
        self._check = check

    def take_controller(self) -> FileControllerLock:
        folder = self._root.reopen()
        try:
            if not self._lock_folder(folder):
                raise LockHeld(_held_by(self.controller()))
            self._check(self._root)
            self._root.write(CONTROLLER, self._record)
        except BaseException:
            os.close(folder)
            raise
        return FileControllerLock(folder, self._forget)

    def take_run(self, issue: int) -> FileRunLock:
        place = self._place(issue)
        for _ in range(TRIES):
            file = self._root.open_lock(place)
            if file is None:
                continue
            try:
                if not _lock(file, issue):
                    raise Busy(f"another process has issue {issue} now")
                if self._root.is_at(file, place):
                    return FileRunLock(self._root, issue, file, place)
            except BaseException:
                os.close(file)
                raise
            os.close(file)
        # Others take it and let go of it all the time.
        raise Busy(f"other processes have issue {issue} now")

    def controller(self) -> Holder | None:
        recorded = self._recorded()
        if recorded is not None and self._lives(recorded):
            return Holder(recorded.pid)
        if self._is_listed():
            return Holder(None if recorded is None else recorded.pid, ended=True)
        return None

    def is_busy(self, issue: int) -> bool:
        file = self._root.open_lock(self._place(issue), make=False)
        if file is None:
            return False
        try:
            return not flock.look(file)
        except OSError as error:
            raise _unlockable(issue, error) from None
        finally:
            os.close(file)

    def _place(self, issue: int) -> Place:
        return within(run_lock(_checked(issue)), self._folder)

    def _lock_folder(self, folder: int) -> bool:
        try:
            return flock.lock(folder)
        except OSError as error:
            self._check(self._root)  # it names the kind of the file system
            raise UnsupportedFilesystem(
                f"{self._root.path!a} cannot be locked: {error.strerror}"
            ) from None

    def _forget(self) -> None:
        """Have nobody believe that we are the controller still."""
        with suppress(StateError):  # what is told of us is not the lock
            if self._root.read(CONTROLLER, MAX_RECORD) == self._record:
                self._root.remove(CONTROLLER)

    def _recorded(self) -> ProcessIdentity | None:
        """Who became the controller last, if that can be read."""
        with suppress(StateError, msgspec.MsgspecError, RecursionError):
            content = self._root.read(CONTROLLER, MAX_RECORD)
            if content is not None:
                return msgspec.json.decode(content, type=ProcessIdentity)
        return None

    def _is_listed(self) -> bool:
        """Whether the kernel lists the lock: it is not everywhere that it does."""
        # Of the mount: some file systems say another device of each of their files.
        mount = mount_of(self._root, read_mounts() or "")
        if mount is None:
            return False
        _, inode = self._root.identity()
        return exclusive_holder(_kernel_locks(), mount.device, inode) is not None


def _checked(issue: int) -> int:
    if not 0 < issue < MAX_NUMBER:
        raise StateError(f"{issue} is no number of an issue")
    return issue


def _lock(file: int, issue: int) -> bool:
    try:
        return flock.lock(file)
    except OSError as error:
        raise _unlockable(issue, error) from None


def _unlockable(issue: int, error: OSError) -> StateError:
    return StateError(f"the lock of issue {issue}: {error.strerror}")


def _held_by(holder: Holder | None) -> str:
    if holder is not None and not holder.ended:
        return (
            f"another EPIC run (pid {holder.pid}) has this repository: let it end, or"
            " stop it with forge-actors epic stop"
        )
    return (
        "another EPIC run has this repository, or workers of one that has ended still"
        " do: let them end"
    )


def _kernel_locks() -> str:
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            return file.read(MAX_KERNEL)
    except OSError:
        return ""
