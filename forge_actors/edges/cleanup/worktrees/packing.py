"""Archives of what no commit can hold: tar files, hashed while they are written."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from forge_actors.domain.removal import Archive
from forge_actors.edges.cleanup.folders import shown
from forge_actors.edges.cleanup.worktrees.census import Tree, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.domain.removal import ArchiveKind
    from forge_actors.edges.cleanup.folders import Folder

_PIECE = 1 << 20


class Part(NamedTuple):
    """A file for an archive: where it is, and its name in the archive."""

    root: Folder
    path: str
    name: str
    #: Of what is no file, what it holds.
    content: bytes | None = None


class ArchiveDamaged(Exception):
    """An archive is not what its receipt says."""


def pack(folder: Folder, kind: ArchiveKind, parts: Iterable[Part]) -> Archive:
    """Write the archive of a kind into a folder; it is on the disk when this returns.

    Raises:
        Unreadable: one of the files.
        OSError: it cannot be written.
    """
    name = f"{kind}.tar"
    draft = f".{name}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(draft, flags, 0o600, dir_fd=folder.fd)
    with open(fd, "wb") as file:
        sink = _Hashing(file)
        count = 0
        with tarfile.open(
            fileobj=cast("IO[bytes]", sink),
            mode="w|",
            format=tarfile.PAX_FORMAT,
            bufsize=_PIECE,
        ) as tar:
            for part in parts:
                _add(tar, part)
                count += 1
        file.flush()
        os.fsync(file.fileno())
    os.rename(draft, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
    os.fsync(folder.fd)
    return Archive(kind, name, sink.digest.hexdigest(), sink.size, count)


def check(folder: Folder, archive: Archive) -> None:
    """Read an archive again.

    Raises:
        ArchiveDamaged: it is gone, or another one than it was.
    """
    digest = hashlib.sha256()
    size = 0
    try:
        with open(open_plain(folder, archive.name), "rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
                size += len(piece)
    except OSError as error:
        raise ArchiveDamaged(f"{archive.name}: {error.strerror}") from None
    if size != archive.size or digest.hexdigest() != archive.sha256:
        raise ArchiveDamaged(f"{archive.name} is not what was written")


def open_plain(folder: Folder, name: str) -> int:
    """A descriptor of a plain file in a folder of ours.

    Raises:
        OSError: it is none.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(name, flags, dir_fd=folder.fd)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(f"{name} is no file")
    return fd


def _add(tar: tarfile.TarFile, part: Part) -> None:
    tree = Tree(part.root)
    info = tarfile.TarInfo(part.name)
    if part.content is not None:
        info.size, info.mode = len(part.content), 0o600
        tar.addfile(info, io.BytesIO(part.content))
        return
    status = tree.status(part.path)
    info.mode = stat.S_IMODE(status.st_mode)
    info.mtime = int(status.st_mtime)
    if stat.S_ISLNK(status.st_mode):
        info.type = tarfile.SYMTYPE
        info.linkname = os.fsdecode(tree.target(part.path))
        tar.addfile(info)
        return
    with open(tree.open(part.path), "rb") as file:
        info.size = os.fstat(file.fileno()).st_size
        try:
            tar.addfile(info, file)
        except OSError as error:
            # tarfile's own word for a file that is shorter by now has no number.
            if error.errno is None:
                problem = f"{shown(part.path)}: it changes"
                raise Unreadable(problem) from None
            raise


class _Hashing:
    """A file that knows the hash of what was written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        self.size += len(data)
        return self._file.write(data)
