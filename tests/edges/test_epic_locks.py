"""Locks of EPIC runs: of one repository, and of its issues."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.epic.errors import (
    Busy,
    LockHeld,
    StateError,
    UnsupportedFilesystem,
)
from forge_actors.domain.epic.places import CONTROLLER, namespace, run_lock
from forge_actors.domain.epic.ports import Holder
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.edges import machine
from forge_actors.edges.epic import flock
from forge_actors.edges.epic import locks as edge
from forge_actors.edges.epic.inherited import keep, prove
from forge_actors.edges.epic.locks import FileLocks
from forge_actors.edges.epic.root import FolderRoot
from forge_actors.edges.machine import lives, own_identity
from forge_actors.testing.epic.locks import FakeKernel, FakeLocks
from forge_actors.testing.epic.locks_contract import CHECKS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from forge_actors.testing.epic.locks import Inherited
    from forge_actors.testing.epic.locks_contract import World


def trusted(root: FolderRoot) -> None:
    """The check of a file system that is one to be trusted."""


class Copy:
    """What another process has inherited: the same description, as a copy has it."""

    def __init__(self, descriptor: int) -> None:
        self.number = os.dup(descriptor)

    def end(self) -> None:
        os.close(self.number)


class OnDisk:
    """The locks of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = FolderRoot(str(folder))
        self.locks = FileLocks(self.root, own_identity(), lives, check=trusted)
        self.others = FileLocks(self.root, own_identity(), lives, check=trusted)

    def inherit(self, descriptor: int) -> Copy:
        return Copy(descriptor)

    def has_folder(self, issue: int) -> bool:
        return self.folder.joinpath(*namespace(issue)).exists()

    def use_folder(self, issue: int) -> None:
        self.folder.joinpath(*namespace(issue), "binding.json").touch()

    def close(self) -> None:
        self.root.close()


class InMemory:
    """The locks for tests of others."""

    def __init__(self, folder: Path) -> None:
        self.kernel = FakeKernel()
        self.locks = FakeLocks(self.kernel, pid=1)
        self.others = FakeLocks(self.kernel, pid=2)

    def inherit(self, descriptor: int) -> Inherited:
        return self.kernel.inherit(descriptor)

    def has_folder(self, issue: int) -> bool:
        return issue in self.kernel.made

    def use_folder(self, issue: int) -> None:
        self.kernel.used.add(issue)

    def close(self) -> None:
        assert not self.kernel.held


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("made", [OnDisk, InMemory])
def test_all_locks_keep_the_contract(
    made: type[OnDisk | InMemory], check: Callable[[World], None], tmp_path: Path
) -> None:
    world = made(tmp_path)
    check(world)
    world.close()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[OnDisk]:
    world = OnDisk(tmp_path)
    yield world
    world.close()


def test_who_dies_keeps_nothing_but_what_others_inherited() -> None:
    kernel = FakeKernel()
    locks, others = FakeLocks(kernel, pid=1), FakeLocks(kernel, pid=2)
    worker = kernel.inherit(locks.take_controller().share())
    locks.take_run(12)
    locks.die()
    assert others.controller() == Holder(1, ended=True)
    with pytest.raises(LockHeld):
        others.take_controller()
    others.take_run(12).close()
    worker.end()
    others.take_controller().close()
    assert kernel.unlocked == ["12"]
    mine = ["+controller", "+12", "-controller", "-12"]
    assert kernel.log == [*mine, "+12", "-12", "+controller", "-controller"]


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """All that is in it, and when it was changed."""
    return {
        str(each.relative_to(folder)): (each.lstat().st_ino, each.lstat().st_mtime_ns)
        for each in (folder, *folder.rglob("*"))
    }


def test_who_is_refused_has_written_nothing(disk: OnDisk, tmp_path: Path) -> None:
    before = tree(tmp_path)
    folder = disk.root.reopen()
    assert flock.lock(folder)
    with pytest.raises(LockHeld, match="or workers of one that has ended"):
        disk.locks.take_controller()
    os.close(folder)

    def refuse(root: FolderRoot) -> None:
        raise UnsupportedFilesystem("it is on nfs")

    refused = FileLocks(disk.root, own_identity(), lives, check=refuse)
    for _ in range(2):  # it keeps nothing
        with pytest.raises(UnsupportedFilesystem, match="it is on nfs"):
            refused.take_controller()
    assert not disk.locks.is_busy(12)
    assert disk.locks.controller() is None
    assert tree(tmp_path) == before


def test_who_is_refused_is_told_who_has_it(disk: OnDisk) -> None:
    taken = disk.locks.take_controller()
    with pytest.raises(LockHeld, match=rf"\(pid {os.getpid()}\)"):
        disk.others.take_controller()
    taken.close()


def test_no_exchange_of_what_is_in_the_repository_makes_a_second_lock(
    disk: OnDisk, tmp_path: Path
) -> None:
    taken = disk.locks.take_controller()
    (tmp_path / "forge-actors").rename(tmp_path / "away")
    with pytest.raises(LockHeld):
        disk.others.take_controller()
    # Of its file it removes only what is its own.
    (tmp_path / "forge-actors").mkdir()
    tmp_path.joinpath(*CONTROLLER).write_text("of somebody else")
    with pytest.raises(LockHeld):
        disk.others.take_controller()
    taken.close()
    assert tmp_path.joinpath(*CONTROLLER).read_text() == "of somebody else"
    disk.others.take_controller().close()


def test_a_number_that_is_used_again_is_not_closed(disk: OnDisk) -> None:
    controller, run = disk.locks.take_controller(), disk.locks.take_run(12)
    numbers = {controller.share(), run.hand_off()}
    controller.close()
    run.close()
    others = [os.open(os.devnull, os.O_RDONLY) for _ in range(8)]
    assert numbers <= set(others)
    controller.close()
    run.close()
    for each in others:
        os.close(each)  # fails if it is closed


def test_what_is_shared_is_never_unlocked(
    disk: OnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if something fails: closing is all that is left."""
    calls: list[tuple[int, int]] = []
    real = fcntl.flock

    def spy(file: int, how: int) -> None:
        calls.append((file, how))
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", spy)
    controller, run = disk.locks.take_controller(), disk.locks.take_run(12)
    early = disk.locks.take_run(13)
    alone = next(number for number, how in reversed(calls) if how & fcntl.LOCK_EX)
    early.close()
    controller.share()
    run.hand_off()
    monkeypatch.setattr(disk.root, "remove", None)  # forgetting it fails
    with pytest.raises(TypeError):
        controller.close()
    run.close()
    assert [file for file, how in calls if how & fcntl.LOCK_UN] == [alone]
    monkeypatch.undo()
    disk.others.take_controller().close()


def test_what_is_shared_is_inherited_by_nobody_by_chance(disk: OnDisk) -> None:
    controller, run = disk.locks.take_controller(), disk.locks.take_run(12)
    assert not os.get_inheritable(controller.share())
    assert not os.get_inheritable(run.hand_off())
    controller.close()
    run.close()


def test_a_lock_that_cannot_be_reached_is_not_busy(
    disk: OnDisk, tmp_path: Path
) -> None:
    folder = tmp_path.joinpath(*namespace(12))
    folder.parent.mkdir(parents=True)
    folder.symlink_to(tmp_path)
    for ask in (disk.locks.take_run, disk.locks.is_busy):
        with pytest.raises(StateError):
            ask(12)
    folder.unlink()
    folder.mkdir()
    os.mkfifo(folder / "run.lock")
    for ask in (disk.locks.take_run, disk.locks.is_busy):
        with pytest.raises(StateError, match="no regular file"):
            ask(12)


def test_a_lock_whose_file_went_while_it_was_taken_is_taken_anew(
    disk: OnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    real = flock.lock

    def lose(file: int) -> bool:
        opened.append(file)
        if len(opened) <= times:
            disk.root.remove(run_lock(12))
        return real(file)

    monkeypatch.setattr(flock, "lock", lose)
    times = 2
    taken = disk.locks.take_run(12)
    assert len(opened) == 3
    assert disk.others.is_busy(12)
    taken.close()
    opened.clear()
    times = edge.TRIES
    with pytest.raises(Busy):
        disk.locks.take_run(12)
    assert not disk.others.is_busy(12)


def test_those_who_only_look_do_not_hinder_each_other(disk: OnDisk) -> None:
    taken = disk.locks.take_run(12)
    disk.use_folder(12)
    taken.close()
    file = disk.root.open_lock(run_lock(12), make=False)
    assert file is not None
    assert flock.look(file)
    assert not disk.locks.is_busy(12)
    os.close(file)


def test_the_controller_is_known_by_what_the_kernel_lists_too(
    disk: OnDisk, tmp_path: Path
) -> None:
    me = own_identity()
    dead = ProcessIdentity(me.boot_id, me.pid, me.start_ticks + 1, me.namespace)
    locks = FileLocks(disk.root, dead, lives, check=trusted)
    taken = locks.take_controller()
    assert locks.controller() == Holder(me.pid, ended=True)
    tmp_path.joinpath(*CONTROLLER).write_text("{}")
    assert locks.controller() == Holder(None, ended=True)
    tmp_path.joinpath(*CONTROLLER).unlink()
    assert locks.controller() == Holder(None, ended=True)
    taken.close()
    assert locks.controller() is None
    # What a dead one has left is no sign of a lock.
    disk.root.write(CONTROLLER, locks._record)
    assert locks.controller() is None


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_is_not_taken_for_another() -> None:
    me = own_identity()
    assert lives(me)
    assert not lives(ProcessIdentity("another boot", me.pid, me.start_ticks, 0))
    assert not lives(ProcessIdentity(me.boot_id, me.pid, me.start_ticks, 1))
    later = ProcessIdentity(me.boot_id, me.pid, me.start_ticks + 1, me.namespace)
    assert not lives(later)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        _, began = machine._state(child.pid)
        other = ProcessIdentity(me.boot_id, child.pid, began, me.namespace)
        assert lives(other)
        assert child.stdin is not None
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not lives(other)  # nobody has asked how it ended
    assert not lives(other)
    pids = (me.pid, 0, -1, 2**40, other.pid)
    assert [pid for pid in pids if machine._is_there(pid)] == [me.pid]


def test_a_worker_takes_only_what_holds_the_locks(disk: OnDisk, tmp_path: Path) -> None:
    controller, run = disk.locks.take_controller(), disk.locks.take_run(12)
    one, other = controller.share(), run.hand_off()
    for number in (one, other):
        os.set_inheritable(number, True)
    prove(disk.root, 12, one, other)
    keep(one, other)
    assert not os.get_inheritable(one)
    assert not os.get_inheritable(other)

    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    folder = os.open(tmp_path.parent, os.O_RDONLY)
    unlocked = disk.root.reopen()
    unlocked_run = disk.root.open_lock(run_lock(12))
    assert unlocked_run is not None
    closed = os.dup(one)
    os.close(closed)
    before = tree(tmp_path)
    for wrong, why in (
        (other, "another kind"),
        (file, "another kind"),
        (folder, "another file"),
        (unlocked, "somebody else has it"),
        (closed, "Bad file descriptor"),
        (-1, "Bad file descriptor"),
        (2**40, "no descriptor"),
    ):
        with pytest.raises(StateError, match=why):
            prove(disk.root, 12, wrong, other)
    for wrong, why in (
        (one, "another kind"),
        (folder, "another kind"),
        (file, "another file"),
        (unlocked_run, "somebody else has it"),
        (closed, "Bad file descriptor"),
    ):
        with pytest.raises(StateError, match=why):
            prove(disk.root, 12, one, wrong)
    with pytest.raises(StateError):  # of another issue
        prove(disk.root, 13, one, other)
    for wrong in (closed, -1, 2**40):
        with pytest.raises(StateError, match="is closed"):
            keep(wrong)
    assert tree(tmp_path) == before

    controller.close()
    with pytest.raises(StateError, match="nobody has it"):
        prove(disk.root, 12, unlocked, other)
    later = disk.locks.take_controller()
    run.close()
    with pytest.raises(StateError, match="nobody has it"):
        prove(disk.root, 12, later.share(), unlocked_run)
    disk.root.remove(run_lock(12))
    with pytest.raises(StateError, match="another file"):
        prove(disk.root, 12, later.share(), unlocked_run)
    later.close()
    for number in (file, folder, unlocked, unlocked_run):
        os.close(number)
