"""The files below one open folder, walked by descriptors: no link is ever followed.

Every step is an open relative to the folder before it, so a folder that is exchanged
for a link meanwhile leads nowhere else. Nothing waits: a FIFO is opened without.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.places import check, is_unfinished, told, unfinished
from forge_actors.domain.epic.ports import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.epic.places import Place

#: Names that are looked at in one folder.
MAX_ENTRIES = 100_000
#: Bytes that are read at once.
PIECE = 1 << 16

_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | _NO_LINK
_READ = os.O_RDONLY | _NO_LINK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_LINK
_LOCK = os.O_RDWR | _NO_LINK
#: What opening a link, a FIFO or a socket comes to with these.
_ODD = {errno.ELOOP, errno.ENXIO, errno.ENOTDIR, errno.EISDIR, errno.EOPNOTSUPP}


class FolderRoot:
    """The port `Root` below one folder; to be closed."""

    def __init__(self, path: str) -> None:
        """
        Raises:
            StateError: it is no folder, or cannot be opened.
        """
        self.path = path
        try:
            self._folder: int | None = os.open(path, _FOLDER)
        except (OSError, ValueError) as error:
            raise StateError(f"{path!a}: {_reason(error)}") from None

    def close(self) -> None:
        """Let go of the folder. May be called again."""
        folder, self._folder = self._folder, None
        if folder is not None:
            os.close(folder)

    def reopen(self) -> int:
        """Another descriptor of the very same folder, whatever has its name by now."""
        try:
            return os.open(".", _FOLDER, dir_fd=self._open())
        except OSError as error:
            raise StateError(f"{self.path!a}: {_reason(error)}") from None

    def identity(self) -> tuple[int, int]:
        """Device and inode of the folder."""
        status = os.fstat(self._open())
        return status.st_dev, status.st_ino

    def read(self, place: Place, limit: int) -> bytes | None:
        with _told(place), self._parent(place) as parent:
            if parent is None:
                return None
            try:
                file = os.open(place[-1], _READ, dir_fd=parent)
            except FileNotFoundError:
                return None
            try:
                size = _regular(file, place).st_size
                content = _all(file, limit + 1) if size <= limit else None
            finally:
                os.close(file)
        if content is None or len(content) > limit:
            raise StateError(f"{told(place)} is longer than {limit} bytes")
        return content

    def write(self, place: Place, content: bytes) -> None:
        self._write(place, content, new=False)

    def create(self, place: Place, content: bytes) -> None:
        self._write(place, content, new=True)

    def append(self, place: Place, limit: int) -> int:
        with _told(place), self._parent(place, make=True) as parent:
            file = os.open(place[-1], _APPEND, 0o600, dir_fd=parent)
            try:
                size = _regular(file, place).st_size
                if size >= limit:
                    raise StateError(f"{told(place)} has {limit} bytes or more")
                os.set_blocking(file, True)
            except BaseException:
                os.close(file)
                raise
            return file

    def entries(self, place: Place) -> list[Entry] | None:
        check(place)
        with _told(place), self._walked(place) as folder:
            if folder is None:
                return None
            found: list[Entry] = []
            with os.scandir(folder) as listing:
                for each in listing:
                    if len(found) == MAX_ENTRIES:
                        problem = f"has more than {MAX_ENTRIES} entries"
                        raise StateError(f"{told(place)} {problem}")
                    if not is_unfinished(each.name):
                        found.append(_entry(each))
            return sorted(found)

    def remove(self, place: Place) -> bool:
        with _told(place), self._parent(place) as parent:
            if parent is None:
                return False
            try:
                os.unlink(place[-1], dir_fd=parent)
            except FileNotFoundError:
                return False
            os.fsync(parent)
            return True

    def move(self, place: Place, name: str) -> bool:
        check((*place[:-1], name))
        with _told(place), self._parent(place) as parent:
            if parent is None or _status(place[-1], parent) is None:
                return False
            if _status(name, parent) is not None:
                raise StateError(f"{told((*place[:-1], name))} is there already")
            os.rename(place[-1], name, src_dir_fd=parent, dst_dir_fd=parent)
            os.fsync(parent)
            return True

    def remove_folder(self, place: Place) -> None:
        """Remove a folder, which has to be empty."""
        with _told(place), self._parent(place) as parent:
            if parent is not None:
                os.rmdir(place[-1], dir_fd=parent)

    def open_lock(self, place: Place, *, make: bool = True) -> int | None:
        """A new description of a file to be locked; None if it is not there.

        So it is too if its folder went while it was to be made.
        """
        flags = _LOCK | os.O_CREAT if make else _LOCK
        with _told(place), suppress(FileNotFoundError):
            with self._parent(place, make=make) as parent:
                if parent is None:
                    return None
                file = os.open(place[-1], flags, 0o600, dir_fd=parent)
            try:
                _regular(file, place)
            except BaseException:
                os.close(file)
                raise
            return file
        return None

    def is_at(self, file: int, place: Place) -> bool:
        """Whether an open file, or the root itself, is what has this name now."""
        with _told(place):
            mine = os.fstat(file)
            if not place:
                return (mine.st_dev, mine.st_ino) == self.identity()
            with self._parent(place) as parent:
                there = None if parent is None else _status(place[-1], parent)
            return there is not None and _same(mine, there)

    def _open(self) -> int:
        if self._folder is None:
            raise StateError(f"{self.path!a} was let go of")
        return self._folder

    def _write(self, place: Place, content: bytes, *, new: bool) -> None:
        with _told(place), self._parent(place, make=True) as parent:
            assert parent is not None
            status = _status(place[-1], parent)
            if status is not None:
                _refuse_odd(status, place)
                if new:
                    raise StateError(f"{told(place)} is there already")
            name = unfinished(secrets.token_hex(8))
            file = os.open(name, _NEW, 0o600, dir_fd=parent)
            try:
                try:
                    _put(file, content)
                    os.fsync(file)
                finally:
                    os.close(file)
                os.rename(name, place[-1], src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with suppress(OSError):
                    os.unlink(name, dir_fd=parent)
                raise
            os.fsync(parent)

    @contextmanager
    def _parent(self, place: Place, *, make: bool = False) -> Iterator[int | None]:
        """The folder in which a file is; None if that is not there."""
        if not place:
            raise StateError("the root itself is no file")
        check(place)
        with self._walked(place[:-1], make=make) as folder:
            yield folder

    @contextmanager
    def _walked(self, place: Place, *, make: bool = False) -> Iterator[int | None]:
        """A folder, opened step by step; None if one on the way is not there."""
        folder: int | None = self.reopen()
        try:
            for name in place:
                assert folder is not None
                below = _step(folder, name, make=make)
                os.close(folder)
                folder = below
                if below is None:
                    break
            yield folder
        finally:
            if folder is not None:
                os.close(folder)


def _step(folder: int, name: str, *, make: bool) -> int | None:
    """The folder of this name in another one."""
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            return None
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=folder)
        os.fsync(folder)
    return os.open(name, _FOLDER, dir_fd=folder)


@contextmanager
def _told(place: Place) -> Iterator[None]:
    """Have every failure be a StateError that names the place."""
    try:
        yield
    except OSError as error:
        raise StateError(f"{told(place)}: {_reason(error)}") from None


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.errno in _ODD:
        return "it, or what leads to it, is a link or of another kind than it has to be"
    return getattr(error, "strerror", None) or str(error)


def _regular(file: int, place: Place) -> os.stat_result:
    status = os.fstat(file)
    _refuse_odd(status, place)
    return status


def _refuse_odd(status: os.stat_result, place: Place) -> None:
    """Refuse what is no regular file of one name."""
    if not stat.S_ISREG(status.st_mode):
        raise StateError(f"{told(place)} is no regular file")
    # One that was replaced since it was opened has none any more.
    if status.st_nlink > 1:
        raise StateError(f"{told(place)} has another name too (a hard link)")


def _status(name: str, parent: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def _entry(found: os.DirEntry[str]) -> Entry:
    if found.is_dir(follow_symlinks=False):
        return Entry(found.name, "folder")
    return Entry(
        found.name, "file" if found.is_file(follow_symlinks=False) else "other"
    )


def _all(file: int, most: int) -> bytes:
    """What is in a file, `most` bytes of it."""
    pieces = bytearray()
    while piece := os.read(file, min(PIECE, most - len(pieces))):
        pieces += piece
    return bytes(pieces)


def _put(file: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]
