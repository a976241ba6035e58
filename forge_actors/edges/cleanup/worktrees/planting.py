"""Writing files into a tree by their paths in it, without going through any link."""

from __future__ import annotations

import os
import stat
import tarfile
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

from forge_actors.edges.cleanup.worktrees.packing import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.removal import Archive
    from forge_actors.edges.cleanup.folders import Folder

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE = 1 << 20


class BadPath(Exception):
    """A path leads out of the tree."""


class Planter:
    """Puts files and links into one tree; what has such a name gives way."""

    def __init__(self, root: int) -> None:
        self._root = root

    def file(self, path: str, mode: int, content: IO[bytes]) -> None:
        with self._folder(path) as (folder, name):
            _clear(folder, name)
            fd = os.open(name, _NEW, mode & 0o777, dir_fd=folder)
            with open(fd, "wb") as file:
                while piece := content.read(_PIECE):
                    file.write(piece)

    def link(self, path: str, target: bytes) -> None:
        with self._folder(path) as (folder, name):
            _clear(folder, name)
            os.symlink(target, os.fsencode(name), dir_fd=folder)

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError), self._folder(path) as (folder, name):
            _clear(folder, name)

    @contextmanager
    def _folder(self, path: str) -> Iterator[tuple[int, str]]:
        """The folder of a file, which is made if it is not there, and its name."""
        *parts, name = path.split("/")
        if not name or any(part in ("", ".", "..") for part in (*parts, name)):
            raise BadPath(f"{path!r} leads out of the tree")
        fd = os.dup(self._root)
        try:
            for part in parts:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=fd)
                try:
                    below = os.open(part, _FOLDER, dir_fd=fd)
                except NotADirectoryError:
                    os.unlink(part, dir_fd=fd)
                    os.mkdir(part, dir_fd=fd)
                    below = os.open(part, _FOLDER, dir_fd=fd)
                os.close(fd)
                fd = below
            yield fd, name
        finally:
            os.close(fd)


def unpack(store: Folder, archive: Archive, prefix: str, planter: Planter) -> int:
    """Put what an archive has below a prefix into a tree; how many files that were."""
    count = 0
    with (
        open(open_plain(store, archive.name), "rb") as file,
        tarfile.open(fileobj=file, mode="r|") as tar,
    ):
        for member in tar:
            path = member.name.removeprefix(prefix)
            if path == member.name:
                continue
            if member.issym():
                planter.link(path, os.fsencode(member.linkname))
            elif member.isreg() and (content := tar.extractfile(member)) is not None:
                planter.file(path, member.mode | stat.S_IRUSR | stat.S_IWUSR, content)
            else:
                continue
            count += 1
    return count


def _clear(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        # Only one that is empty can be in the way of a file of the same tree.
        os.rmdir(name, dir_fd=folder)
