"""Whether locks hold where a repository is: what is mounted there, and a trial."""

from __future__ import annotations

import fcntl
import os
import re
import sys
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.epic.errors import StateError, UnsupportedFilesystem
from forge_actors.edges.epic import filesystem as edge
from forge_actors.edges.epic import flock, mounted
from forge_actors.edges.epic.filesystem import check_filesystem
from forge_actors.edges.epic.locks import FileLocks
from forge_actors.edges.epic.root import FolderRoot
from forge_actors.edges.machine import lives, own_identity

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Iterator[FolderRoot]:
    (tmp_path / "repo").mkdir()
    root = FolderRoot(str(tmp_path / "repo"))
    yield root
    assert list((tmp_path / "repo").iterdir()) == []
    root.close()


def table_is(monkeypatch: pytest.MonkeyPatch, table: str | None) -> None:
    monkeypatch.setattr(mounted, "read_mounts", lambda: table)


def test_a_disk_of_this_machine_passes(root: FolderRoot) -> None:
    check_filesystem(root)


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no tmpfs")
def test_memory_passes() -> None:
    shared = FolderRoot("/dev/shm")
    try:
        check_filesystem(shared)
    finally:
        shared.close()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_mount_is_the_one_that_the_folder_was_opened_on(
    root: FolderRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = mounted.read_mounts()
    assert table
    mount = mounted.mount_of(root, table)
    assert mount is not None
    place = mount.place
    # One that hides it from all who come by the path later.
    later = f"{table}9999999 1 0:9999 / {place} rw - nfs4 server rw\n"
    assert mounted.mount_of(root, later) == mount
    table_is(monkeypatch, later)
    check_filesystem(root)
    without = re.sub(rf"(?m)^{mount.number} ", "8888888 ", later)
    assert without != later
    monkeypatch.setattr(root, "identity", lambda: (0, 1))
    found = mounted.mount_of(root, without)
    assert found is not None
    assert found.kind == "nfs4"


@pytest.mark.parametrize("kind", ["nfs4", "fuse.sshfs", "vfat", ""])
def test_where_locks_may_not_hold_nothing_is_tried(
    root: FolderRoot, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(edge, "_tried", None)
    table_is(monkeypatch, f"1 1 0:1 / / rw - {kind} server rw" if kind else "")
    with pytest.raises(UnsupportedFilesystem) as refused:
        check_filesystem(root)
    assert root.path in str(refused.value)
    assert (kind or "nobody tells") in str(refused.value)
    locks = FileLocks(root, own_identity(), lives)
    with pytest.raises(UnsupportedFilesystem):
        locks.take_controller()


def test_where_there_is_no_table_the_trial_decides(
    root: FolderRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_is(monkeypatch, None)
    check_filesystem(root)
    monkeypatch.setattr(flock, "lock", lambda file: True)
    with pytest.raises(UnsupportedFilesystem, match="two had the same one"):
        check_filesystem(root)
    monkeypatch.undo()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert mounted.read_mounts() is None


def of_a_process(file: int) -> bool:
    """A lock as NFS makes it of ours."""
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class OfAProcess:
    """The same, where two of one process are told apart, but not inherited."""

    def __init__(self) -> None:
        self.holder: int | None = None

    def __call__(self, file: int) -> bool:
        if self.holder is not None:
            try:
                os.fstat(self.holder)
            except OSError:
                self.holder = None
        if self.holder not in (None, file):
            return False
        self.holder = file
        return True


class ForEver:
    """One that nobody gets again."""

    def __init__(self) -> None:
        self.taken = False

    def __call__(self, file: int) -> bool:
        taken, self.taken = self.taken, True
        return not taken


@pytest.mark.parametrize(
    ("lock", "why"),
    [
        (lambda file: True, "two had the same one"),
        (lambda file: False, "one that nobody had was refused"),
        (of_a_process, "two had the same one"),
        (OfAProcess(), "did not keep the one that it inherited"),
        (ForEver(), "one was kept after the end of the process"),
    ],
)
def test_locks_that_do_not_hold_are_found_by_the_trial(
    root: FolderRoot, monkeypatch: pytest.MonkeyPatch, lock: object, why: str
) -> None:
    monkeypatch.setattr(flock, "lock", lock)
    with pytest.raises(UnsupportedFilesystem, match=why):
        check_filesystem(root)


def test_what_the_system_says_to_a_lock_is_told(
    root: FolderRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: int, how: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(UnsupportedFilesystem, match="No locks available"):
        check_filesystem(root)
    with pytest.raises(UnsupportedFilesystem, match="No locks available"):
        FileLocks(root, own_identity(), lives).take_controller()
    trusting = FileLocks(root, own_identity(), lives, check=lambda root: None)
    with pytest.raises(UnsupportedFilesystem, match="cannot be locked: No locks"):
        trusting.take_controller()


def test_where_nothing_can_be_written_nothing_can_be_tried(
    root: FolderRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/not/there")
    with pytest.raises(StateError, match="No such file"):
        check_filesystem(root)


def test_a_process_of_the_trial_that_does_not_end_is_ended(
    root: FolderRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge, "_CHILD", "import time; time.sleep(600)")
    monkeypatch.setattr(edge, "TRIAL_SECONDS", 0.01)
    with pytest.raises(UnsupportedFilesystem, match="did not end within"):
        check_filesystem(root)
