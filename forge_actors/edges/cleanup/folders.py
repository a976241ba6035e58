"""Folders that are held open: what is in them is never reached by a path.

A path means something else as soon as anybody puts a link, or another folder, in place
of one of its parts. A folder that is open stays the folder it was. So a home is opened
once, part by part and without following a link, and everything below it by its name in
the folder around it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

#: Only to get on to what is below; a folder that may not be listed can be passed too.
_PASS = getattr(os, "O_PATH", os.O_RDONLY)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: What the kernel says of a name that is a link, or no folder, or nothing.
_ELSE = (errno.ELOOP, errno.ENOTDIR)
#: Bytes of one block as the kernel counts them for a file.
BLOCK = 512

_MOUNT = re.compile(rb"^mnt_id:\s*(\d+)$", re.MULTILINE)


class Identity(NamedTuple):
    """What a name stands for: another file or folder of that name has another one."""

    device: int
    inode: int


class Mount(NamedTuple):
    """Where something is mounted; the id tells a bind mount from what it shows."""

    device: int
    id: int


class Unsafe(Exception):
    """Something is not what it has to be, so that nothing in it may be touched."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{shown(path)}: {reason}")
        self.reason = reason


class Entry(NamedTuple):
    """A name in a folder, and what it stands for. Links are not followed."""

    name: str
    identity: Identity
    mode: int
    #: What it takes on the disk, the content of a folder not included.
    bytes: int
    links: int
    #: Seconds since 1970 at which it was last changed in any way.
    changed: float
    owner: int

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)


class Folder:
    """A folder that is open, until the block it is used in ends."""

    def __init__(self, fd: int, path: str) -> None:
        self.fd = fd
        #: What it was opened as. For people only.
        self.path = path
        status = os.fstat(fd)
        self.identity = Identity(status.st_dev, status.st_ino)
        self.mount = mount_of(fd, status.st_dev)
        self.owner = status.st_uid
        self.mode = stat.S_IMODE(status.st_mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        os.close(self.fd)

    def entries(
        self, wanted: Callable[[str], object] = lambda _: True
    ) -> Iterator[Entry]:
        """What is in it under the names that are wanted, one after the other, in no
        order and in little memory."""
        with os.scandir(self.fd) as found:
            for each in found:
                if not wanted(each.name):
                    continue
                with suppress(FileNotFoundError):
                    status = each.stat(follow_symlinks=False)
                    yield entry_from(each.name, status)

    def entry(self, name: str) -> Entry | None:
        """One of them, as it is now."""
        try:
            status = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return entry_from(name, status)

    def folder(self, name: str, identity: Identity | None = None) -> Folder | None:
        """Open a folder in it; None if there is nothing of this name.

        Raises:
            Unsafe: it is a link or no folder, is mounted there, or is not the one that
                was seen before.
            PermissionError: it may not be listed.
        """
        return child_folder(self, name, identity)

    def make_folder(self, name: str) -> Folder:
        """Open a folder of ours in it, which is made if it is not there.

        Raises:
            Unsafe: as `folder`.
        """
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=self.fd)
        made = self.folder(name)
        if made is None:
            raise Unsafe(f"{self.path}/{name}", "it was removed just now")
        return made


def child_folder(
    parent: Folder, name: str, identity: Identity | None = None
) -> Folder | None:
    """What `Folder.folder` promises."""
    path = os.path.join(parent.path, name)
    try:
        fd = os.open(name, _FOLDER, dir_fd=parent.fd)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in _ELSE:
            raise Unsafe(path, "it is a link, or no folder") from None
        raise
    found: Folder | None = None
    try:
        found = Folder(fd, path)
        if found.mount != parent.mount:
            raise Unsafe(path, "something else is mounted there")
        if identity is not None and found.identity != identity:
            raise Unsafe(path, "it was exchanged for something else")
    except BaseException:
        os.close(fd)
        raise
    return found


@contextmanager
def opened_home(path: str) -> Iterator[Folder]:
    """A home, by the path that its runtime has found it to have, without any link.

    Raises:
        Unsafe: a part of the path is a link by now, or it is gone, or not ours.
    """
    parts = [part for part in path.split("/") if part]
    if not path.startswith("/") or ".." in parts or "." in parts:
        raise Unsafe(path, "it is no absolute path without detours")
    fd = os.open("/", _PASS | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for number, part in enumerate(parts, start=1):
            flags = _FOLDER if number == len(parts) else _FOLDER | _PASS
            try:
                below = os.open(part, flags, dir_fd=fd)
            except OSError as error:
                so_far = "/" + "/".join(parts[:number])
                linked = error.errno in _ELSE
                problem = "it is a link, or no folder" if linked else error.strerror
                raise Unsafe(so_far, str(problem)) from None
            os.close(fd)
            fd = below
        home = Folder(fd, path)
        if home.owner != os.geteuid():
            raise Unsafe(path, "it belongs to another user")
        yield home
    finally:
        os.close(fd)


def entry_from(name: str, status: os.stat_result) -> Entry:
    return Entry(
        name=name,
        identity=Identity(status.st_dev, status.st_ino),
        mode=status.st_mode,
        bytes=status.st_blocks * BLOCK,
        links=status.st_nlink,
        # A time of change that lies is possible, one of the inode is not.
        changed=max(status.st_mtime, status.st_ctime),
        owner=status.st_uid,
    )


def mount_of(fd: int, device: int) -> Mount:
    """What something that is open is mounted with; without an id where none is told."""
    try:
        info = os.open(f"/proc/self/fdinfo/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return Mount(device, -1)
    try:
        found = _MOUNT.search(os.read(info, 4096))
    finally:
        os.close(info)
    return Mount(device, int(found[1]) if found else -1)


def shown(name: str) -> str:
    """A name as it can be written down anywhere, whatever bytes it has."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
