"""The tar file that carries a home to another machine: plain files and nothing else.

What is read was perhaps made by somebody who means harm. So only ordinary files are
taken, with names and sizes that the reader allows, in the classic format: no links, no
folders, no devices, no long or extended headers.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, NamedTuple

from forge_actors.domain.errors import InvalidInput, StoreFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BLOCK = tarfile.BLOCKSIZE
#: Bytes that are moved at once.
PIECE = 1 << 20
#: What stands at the end of an archive.
_END = bytes(BLOCK)
_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE)


class Member(NamedTuple):
    """A file of an archive as its manifest tells it."""

    size: int
    sha256: str


class Writer:
    """Adds files to an archive; what was added is in `members`."""

    def __init__(self, file: IO[bytes], mtime: int) -> None:
        self._file = file
        self._mtime = mtime
        self.members: dict[str, Member] = {}

    def add(self, name: str, source: IO[bytes], size: int) -> None:
        """Add the first `size` bytes of a file; one that is shorter by now is filled
        up with zeros."""
        self._file.write(self._header(name, size))
        digest = hashlib.sha256()
        left = size
        while left:
            piece = source.read(min(left, PIECE)) or bytes(min(left, PIECE))
            digest.update(piece)
            self._file.write(piece)
            left -= len(piece)
        self._file.write(bytes(-size % BLOCK))
        self.members[name] = Member(size, digest.hexdigest())

    def end(self) -> None:
        self._file.write(_END * 2)

    def _header(self, name: str, size: int) -> bytes:
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = size, 0o600, self._mtime
        # Sizes that the classic form cannot tell are told in base 256.
        return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict")


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """A private file that is at `path` when the block ends well, and else nowhere.

    Raises:
        StoreFailed: it cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        with open(os.open(part, flags, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise StoreFailed(f"{path} cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            part.unlink()


def unpack(
    path: Path, folder: Path, limit_of: Callable[[str], int | None]
) -> dict[str, Member]:
    """Write the files of an archive into a folder that is new; what they are.

    `limit_of` tells how many bytes a file of this name may have, or None if there may
    be none. Names with a slash go to folders that exist.

    Raises:
        InvalidInput: the archive has something that may not be in it.
        StoreFailed: it cannot be read, or a file cannot be written.
    """
    members: dict[str, Member] = {}
    try:
        with path.open("rb") as file:
            while (info := _next(file)) is not None:
                limit = limit_of(info.name)
                if info.type not in _PLAIN or limit is None or info.name in members:
                    raise _hostile(f"{info.name[:100]!r} has no place in it")
                if not 0 <= info.size <= limit:
                    raise _hostile(f"{info.name} is too large")
                target = os.path.join(folder, info.name)
                members[info.name] = _unpack_one(file, info.size, target)
    except OSError as error:
        raise StoreFailed(f"{path} cannot be unpacked: {error.strerror}") from error
    return members


def _next(file: IO[bytes]) -> tarfile.TarInfo | None:
    """The header of the next file; None at the end."""
    block = file.read(BLOCK)
    if block == _END:
        return None
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "strict")
    except (tarfile.HeaderError, ValueError):
        raise _hostile("it is cut off, or no tar file") from None


def _unpack_one(file: IO[bytes], size: int, target: str) -> Member:
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    digest = hashlib.sha256()
    with open(os.open(target, flags, 0o600), "wb") as made:
        left = size
        while left:
            piece = file.read(min(left, PIECE))
            if not piece:
                raise _hostile("it is cut off")
            digest.update(piece)
            made.write(piece)
            left -= len(piece)
    file.read(-size % BLOCK)
    return Member(size, digest.hexdigest())


def _hostile(problem: str) -> InvalidInput:
    return InvalidInput("file", f"this is no export of a home: {problem}")
