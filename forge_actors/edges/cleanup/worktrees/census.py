"""What lies in the folder of a worktree, read without following a link.

Two censuses that are equal say that nothing was changed in between: the time of change
of a file cannot be set by a program.
"""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from forge_actors.domain.removal import is_disposable
from forge_actors.edges.cleanup.folders import Unsafe, child_folder, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from forge_actors.edges.cleanup.folders import Folder

#: Folders in one another. Who nests deeper than this gets no help.
MAX_DEPTH = 200
#: Files of one worktree; more are not held in memory.
MAX_FILES = 500_000

_PASS = getattr(os, "O_PATH", os.O_RDONLY)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Unreadable(Exception):
    """Something in the tree cannot be read, and so not be saved; what and why."""


class File(NamedTuple):
    """A file or link: what it is, and what changes when anybody changes it."""

    mode: int
    size: int
    inode: int
    modified: int
    changed: int

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def git_mode(self) -> str:
        if self.is_link:
            return "120000"
        return "100755" if self.mode & 0o100 else "100644"


class Census(NamedTuple):
    """Everything in a tree, by its path in it."""

    files: dict[str, File]
    #: Folders that are, or hold the files of, a repository of their own.
    nested: tuple[str, ...]
    #: Folders of disposable names that git ignores, and in which nothing is looked at.
    left_out: tuple[str, ...]


def take(
    root: Folder,
    disposable: Collection[str] = (),
    is_ignored: Callable[[str], bool] = lambda path: False,
) -> Census:
    """Look at everything below `root`; folders that nobody needs only by name.

    Raises:
        Unreadable: at something in it.
    """
    walk = _Walk(tuple(disposable), is_ignored)
    walk.look(root, "", 0)
    return Census(walk.files, tuple(walk.nested), tuple(walk.left_out))


def take_whole(root: Folder, path: str) -> dict[str, File]:
    """Every file below a folder of the tree, those of git included.

    Raises:
        Unreadable: at something in it.
    """
    walk = _Walk((), lambda _: False, whole=True)
    try:
        with ExitStack() as opened:
            folder: Folder | None = root
            for part in path.split("/"):
                if folder is not None:
                    folder = child_folder(folder, part)
                if folder is not None:
                    opened.enter_context(folder)
            if folder is not None:
                walk.look(folder, path, 0)
    except Unsafe as problem:
        raise Unreadable(str(problem)) from None
    except OSError as error:
        raise Unreadable(f"{shown(path)}: {error.strerror}") from None
    return walk.files


class _Walk:
    def __init__(
        self,
        disposable: tuple[str, ...],
        is_ignored: Callable[[str], bool],
        *,
        whole: bool = False,
    ) -> None:
        self._whole = whole
        self._disposable = disposable
        self._is_ignored = is_ignored
        self.files: dict[str, File] = {}
        self.nested: list[str] = []
        self.left_out: list[str] = []

    def look(self, folder: Folder, path: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise Unreadable(f"{shown(path)}: too many folders in one another")
        with os.scandir(folder.fd) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            where = f"{path}/{entry.name}" if path else entry.name
            if entry.name == ".git" and not self._whole:
                if path:
                    self.nested.append(path)
                continue
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                self._enter(folder, entry.name, where, depth)
            elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                if stat.S_ISREG(status.st_mode) and not status.st_mode & stat.S_IRUSR:
                    _grant(folder, entry.name, stat.S_IRUSR)
                    status = os.stat(
                        entry.name, dir_fd=folder.fd, follow_symlinks=False
                    )
                self.files[where] = _file(status)
        if len(self.files) > MAX_FILES:
            raise Unreadable(f"it has more than {MAX_FILES} files")

    def _enter(self, folder: Folder, name: str, path: str, depth: int) -> None:
        if is_disposable(name, self._disposable) and self._is_ignored(path):
            self.left_out.append(path)
            return
        try:
            try:
                below = child_folder(folder, name)
            except PermissionError:
                _grant(folder, name, stat.S_IRWXU)
                below = child_folder(folder, name)
        except Unsafe as problem:
            raise Unreadable(str(problem)) from None
        except OSError as error:
            raise Unreadable(f"{shown(path)}: {error.strerror}") from None
        if below is not None:
            with below:
                self.look(below, path, depth + 1)


class Tree:
    """Looks at files of a tree by their paths in it, and follows no link."""

    def __init__(self, root: Folder) -> None:
        self._root = root

    def status(self, path: str) -> os.stat_result:
        """
        Raises:
            Unreadable: it is not there any more.
        """
        with self._folder(path) as (fd, name):
            return os.stat(name, dir_fd=fd, follow_symlinks=False)

    def open(self, path: str) -> int:
        """A descriptor to read a plain file by.

        Raises:
            Unreadable: it is none any more, or may not be read.
        """
        with self._folder(path) as (folder, name):
            fd = os.open(name, _READ, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise Unreadable(f"{shown(path)}: it is no file any more")
        return fd

    def target(self, path: str) -> bytes:
        """Where a link leads.

        Raises:
            Unreadable: it is none any more.
        """
        with self._folder(path) as (fd, name):
            return os.fsencode(os.readlink(name, dir_fd=fd))

    @contextmanager
    def _folder(self, path: str) -> Iterator[tuple[int, str]]:
        """The folder of a file, open, and its name in it."""
        *parts, name = path.split("/")
        fd = os.dup(self._root.fd)
        try:
            for part in parts:
                below = os.open(part, _FOLDER, dir_fd=fd)
                os.close(fd)
                fd = below
            yield fd, name
        except OSError as error:
            raise Unreadable(f"{shown(path)}: {error.strerror}") from None
        finally:
            os.close(fd)


def _file(status: os.stat_result) -> File:
    return File(
        mode=status.st_mode,
        size=status.st_size,
        inode=status.st_ino,
        modified=status.st_mtime_ns,
        changed=status.st_ctime_ns,
    )


def _grant(folder: Folder, name: str, rights: int) -> None:
    """Give ourselves rights to something of ours, so that it can be saved."""
    try:
        fd = os.open(name, _PASS | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder.fd)
    except OSError:
        return
    try:
        # What was opened only to be passed can be changed only by its name in /proc.
        with suppress(OSError):
            mode = stat.S_IMODE(os.fstat(fd).st_mode)
            os.chmod(f"/proc/self/fd/{fd}", mode | rights)
    finally:
        os.close(fd)
