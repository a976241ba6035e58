"""The ids in a repository: one file in our folder of its git common directory."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from forge_actors.domain.repositories import Identity

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

#: Our folder in a git common directory, and the file in it with the ids, one a line.
OUR_FOLDER, ID_FILE = "forge-actors", "id"
#: Ids kept in the file; one is added by each home that cannot use those of others.
MAX_IDS = 64

_ID = re.compile(r"[0-9a-z]{19}")
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def identity(common_dir: str) -> Identity | None:
    """See the port `Git`. An id file that cannot be read counts as none."""
    try:
        status = os.stat(common_dir)
    except OSError:
        return None
    ids: tuple[str, ...] = ()
    with suppress(OSError):
        folder = os.open(os.path.join(common_dir, OUR_FOLDER), _FOLDER_FLAGS)
        try:
            ids = _read_ids(folder)
        finally:
            os.close(folder)
    return Identity(status.st_dev, status.st_ino, ids)


def add_id(common_dir: str, repo_id: str) -> None:
    """Write an id into the file, as its first one.

    Raises:
        OSError: it cannot be written.
    """
    path = os.path.join(common_dir, OUR_FOLDER)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    folder = os.open(path, _FOLDER_FLAGS)
    try:
        _add_id(folder, repo_id)
    finally:
        os.close(folder)


def known_ids(common_dir: str) -> set[str]:
    """The ids in the file of a git common directory; none if there is no such file."""
    with suppress(OSError):
        folder = os.open(os.path.join(common_dir, OUR_FOLDER), _FOLDER_FLAGS)
        try:
            return set(_read_ids(folder))
        finally:
            os.close(folder)
    return set()


def drop_ids(common_dir: str, ids: Collection[str]) -> None:
    """Take ids out of the file again; with the last of them it goes, and our folder if
    nothing else is in it, such as a person's settings of the repository.

    Raises:
        OSError: it cannot be changed.
    """
    path = os.path.join(common_dir, OUR_FOLDER)
    folder = os.open(path, _FOLDER_FLAGS)
    try:
        _lock(folder)
        left = [known for known in _read_ids(folder) if known not in ids]
        if left:
            _replace_ids(folder, left)
            return
        for name in os.listdir(folder):  # noqa: PTH208 - by its descriptor
            if name == ID_FILE or name.startswith(f"{ID_FILE}."):
                os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)
    with suppress(OSError):
        os.rmdir(path)


def _lock(folder: int) -> None:
    with suppress(OSError):  # some network disks have no locks
        # Two services that write at once must not lose an id; closing unlocks.
        fcntl.flock(folder, fcntl.LOCK_EX)


def _read_ids(folder: int) -> tuple[str, ...]:
    # Anything may lie there: no link is followed and no pipe is waited for.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(ID_FILE, flags, dir_fd=folder)
    except FileNotFoundError:
        return ()
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ()
        text = os.read(fd, 20 * MAX_IDS).decode("ascii", "replace")
    finally:
        os.close(fd)
    return tuple(line for line in text.split("\n") if _ID.fullmatch(line))


def _add_id(folder: int, repo_id: str) -> None:
    """Replace the id file by one that begins with a new id, whole or not at all."""
    if stat.S_IMODE(os.fstat(folder).st_mode) != 0o700:
        os.fchmod(folder, 0o700)
    _lock(folder)
    ids = [repo_id, *(known for known in _read_ids(folder) if known != repo_id)]
    _replace_ids(folder, ids[:MAX_IDS])


def _replace_ids(folder: int, ids: Sequence[str]) -> None:
    draft = f"{ID_FILE}.{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(draft, flags, 0o600, dir_fd=folder)
    try:
        with open(fd, "w", encoding="ascii") as file:
            file.writelines(f"{known}\n" for known in ids)
            file.flush()
            # The registration is durable; without its id it would not be recognised.
            os.fsync(fd)
        os.rename(draft, ID_FILE, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)
        raise
    os.fsync(folder)
