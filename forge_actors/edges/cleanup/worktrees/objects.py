"""Objects in the store of a repository: written byte for byte, and read back.

A file goes in as it is. What a filter or the end of a line would make of it may be less
than it is, and would be all that is left.
"""

from __future__ import annotations

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

    def write(self, fd: int) -> str:
        """The name of the blob that an open file is now.

        Raises:
            GitFailed: it was not written.
        """
        if not self._alone:
            try:
                return self._write_by_path(fd)
            except GitFailed:
                # Nobody may look into a process that has changed its user.
                self._alone = True
        told = self._git.run(*_HASH, "--stdin", source=fd)
        return told.decode().strip()

    def _write_by_path(self, fd: int) -> str:
        if self._child is None:
            self._child = self._git.start(*_HASH, "--stdin-paths")
        stdin, stdout = _pipes(self._child)
        # By a path that leads to what we have opened, and to nothing else.
        try:
            stdin.write(f"/proc/{os.getpid()}/fd/{fd}\n".encode())
            stdin.flush()
            name = stdout.readline().decode().strip()
        except OSError:
            name = ""
        if not name:
            _, words = self._child.communicate()
            text = words.decode("utf-8", "replace").strip()
            raise GitFailed(f"git hash-object: {text or 'it ended too soon'}")
        return name

    def write_bytes(self, content: bytes) -> str:
        """The same for some bytes."""
        fd = os.memfd_create("blob", os.MFD_CLOEXEC)
        try:
            os.write(fd, content)
            os.lseek(fd, 0, os.SEEK_SET)
            return self.write(fd)
        finally:
            os.close(fd)


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
        for name in names:
            stdin.write(name + b"\n")
            stdin.flush()
            _check(stdout, name)
    except OSError as error:
        raise GitFailed(f"git cat-file: {error.strerror}") from None
    finally:
        end(child)
    make_durable(git, (name.decode() for name in names))
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


def make_durable(git: Git, names: Iterable[str]) -> None:
    """See that objects of their own files are on the disk, and so are their names.

    Raises:
        GitFailed: the disk does not take them.
    """
    try:
        _make_durable(git, names)
    except OSError as error:
        problem = error.strerror or str(error)
        raise GitFailed(f"the objects are not on the disk: {problem}") from None


def _make_durable(git: Git, names: Iterable[str]) -> None:
    common = git.run("rev-parse", "--path-format=absolute", "--git-common-dir")
    store = os.path.join(os.fsdecode(common.removesuffix(b"\n")), "objects")
    folders = set()
    for name in names:
        folder = os.path.join(store, name[:2])
        if os.path.exists(os.path.join(folder, name[2:])):
            _sync(os.path.join(folder, name[2:]))
            folders.add(folder)
    for folder in (*sorted(folders), store):
        _sync(folder)


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
