"""Objects in the store of a repository: written byte for byte, and read back.

A file goes in as it is. What a filter or the end of a line would make of it may be less
than it is, and would be all that is left.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from typing import TYPE_CHECKING, Self

from forge_actors.edges.cleanup.worktrees.git import GitFailed, end

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable
    from types import TracebackType
    from typing import IO

    from forge_actors.edges.cleanup.worktrees.git import Git

#: Objects that one git is asked for before its answers are read.
AT_ONCE = 64
#: Objects from which on it is cheaper to sync all of the disk.
MAX_SYNCS = 64
_PIECE = 1 << 20
_HASH = ("hash-object", "-w", "-t", "blob", "--no-filters")


class BlobWriter:
    """Writes files as blobs, by one git for all of them, until its block ends."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._child: subprocess.Popen[bytes] | None = None
        #: Whether each file needs a git of its own.
        self._alone = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._child is not None:
            end(self._child)

    def write(self, fds: list[int]) -> list[str]:
        """The names of the blobs that some open files are now.

        Raises:
            GitFailed: one was not written.
        """
        if not self._alone:
            try:
                return self._write_by_path(fds)
            except GitFailed:
                # Nobody may look into a process that has changed its user.
                self._alone = True
        return [
            self._git.run(*_HASH, "--stdin", source=fd).decode().strip() for fd in fds
        ]

    def _write_by_path(self, fds: list[int]) -> list[str]:
        if self._child is None:
            self._child = self._git.start(*_HASH, "--stdin-paths")
        stdin, stdout = _pipes(self._child)
        # By paths that lead to what we have opened, and to nothing else.
        lines = "".join(f"/proc/{os.getpid()}/fd/{fd}\n" for fd in fds)
        try:
            stdin.write(lines.encode())
            stdin.flush()
            names = [stdout.readline().decode().strip() for _ in fds]
        except OSError:
            names = [""]
        if not all(names):
            _, words = self._child.communicate()
            text = words.decode("utf-8", "replace").strip()
            raise GitFailed(f"git hash-object: {text or 'it ended too soon'}")
        return names


def in_memory(content: bytes) -> int:
    """A descriptor of a file that has some bytes, and no name."""
    fd = os.memfd_create("blob", os.MFD_CLOEXEC)
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def read_back(git: Git, tips: Iterable[str], without: Iterable[str]) -> int:
    """Read every object of some commits that others have not, and see that it is whole
    and on the disk; how many these are.

    Raises:
        GitFailed: one is missing, or is not what its name says.
    """
    tips = list(tips)
    if not tips:
        return 0
    listed = git.run(*("rev-list", "--objects", *tips, "--not", *without, "--"))
    names = [line.split(b" ", 1)[0] for line in listed.splitlines() if line]
    child = git.start("cat-file", "--batch")
    try:
        stdin, stdout = _pipes(child)
        for start in range(0, len(names), AT_ONCE):
            some = names[start : start + AT_ONCE]
            stdin.write(b"\n".join(some) + b"\n")
            stdin.flush()
            for name in some:
                _check(stdout, name)
    except OSError as error:
        raise GitFailed(f"git cat-file: {error.strerror}") from None
    finally:
        end(child)
    _make_durable(git, [name.decode() for name in names])
    return len(names)


def _check(stdout: IO[bytes], name: bytes) -> None:
    head = stdout.readline().split()
    if len(head) != 3 or head[0] != name:
        raise GitFailed(f"the object {name.decode()} cannot be read back")
    kind = "sha256" if len(name) == 64 else "sha1"
    digest = hashlib.new(kind, usedforsecurity=False)
    digest.update(b"%s %s\0" % (head[1], head[2]))
    left = int(head[2])
    while left:
        piece = stdout.read(min(left, _PIECE))
        if not piece:
            raise GitFailed(f"the object {name.decode()} is cut off")
        digest.update(piece)
        left -= len(piece)
    stdout.read(1)
    if digest.hexdigest().encode() != name:
        raise GitFailed(f"the object {name.decode()} is damaged")


def _make_durable(git: Git, names: list[str]) -> None:
    """See that objects of their own files are on the disk, and so are their names.

    Raises:
        GitFailed: the disk does not take them.
    """
    common = git.run("rev-parse", "--path-format=absolute", "--git-common-dir")
    store = os.path.join(os.fsdecode(common.removesuffix(b"\n")), "objects")
    try:
        if len(names) > MAX_SYNCS and _sync_disk_of(store):
            return
        folders = set()
        for name in names:
            folder = os.path.join(store, name[:2])
            if os.path.exists(os.path.join(folder, name[2:])):
                _sync(os.path.join(folder, name[2:]))
                folders.add(folder)
        for folder in (*sorted(folders), store):
            _sync(folder)
    except OSError as error:
        problem = error.strerror or str(error)
        raise GitFailed(f"the objects are not on the disk: {problem}") from None


def _sync_disk_of(path: str) -> bool:
    """Sync everything on the disk of a path; False where the system cannot do that."""
    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if syncfs is None:
        return False
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if syncfs(fd) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(fd)
    return True


def _sync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _pipes(child: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert child.stdin is not None
    assert child.stdout is not None
    return child.stdin, child.stdout
