"""The files that a repository brings along for its work, read as a stranger's.

Each is opened by its name within the folder, which is opened within the checkout:
nothing that is swapped meanwhile leads out of it.
"""

from __future__ import annotations

import os
import re
import stat

from forge_actors.domain.errors import InvalidInput, NotFound
from forge_actors.domain.forge_files import (
    FOLDER,
    MAX_BYTES,
    MAX_FILE_BYTES,
    MAX_FILES,
    ForgeFile,
)

#: Entries of the folder that are looked at, files of other kinds included.
MAX_ENTRIES = 1000
_ENDING = ".toml"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\.toml")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_forge(checkout: str) -> tuple[ForgeFile, ...]:
    """The `.forge/*.toml` of a checkout, by name; nothing if there is no such folder.

    Raises:
        InvalidInput: naming what cannot be taken as it is.
        NotFound: there is no checkout.
    """
    try:
        root = os.open(checkout, _FOLDER)
    except FileNotFoundError:
        raise NotFound(f"there is no folder {checkout}") from None
    except OSError as error:
        raise InvalidInput(FOLDER, f"{checkout}: {error.strerror}") from None
    try:
        folder = _open_folder(root)
        if folder is None:
            return ()
        try:
            return _read(folder)
        finally:
            os.close(folder)
    finally:
        os.close(root)


def _open_folder(root: int) -> int | None:
    try:
        if stat.S_ISLNK(os.lstat(FOLDER, dir_fd=root).st_mode):
            raise InvalidInput(FOLDER, "is a link: it has to be a folder")
        return os.open(FOLDER, _FOLDER | os.O_NOFOLLOW, dir_fd=root)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(FOLDER, f"cannot be read: {error.strerror}") from None


def _read(folder: int) -> tuple[ForgeFile, ...]:
    names = _names(folder)
    if len(names) > MAX_FILES:
        raise InvalidInput(FOLDER, f"has more than {MAX_FILES} files *{_ENDING}")
    files: list[ForgeFile] = []
    total = 0
    for name in names:
        data = _content(folder, name)
        total += len(data)
        if total > MAX_BYTES:
            raise InvalidInput(FOLDER, f"has more than {MAX_BYTES} bytes in all")
        try:
            files.append(ForgeFile(name, data.decode("utf-8")))
        except UnicodeDecodeError:
            raise InvalidInput(f"{FOLDER}/{name}", "is no UTF-8 text") from None
    return tuple(files)


def _names(folder: int) -> list[str]:
    names = []
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count >= MAX_ENTRIES:
                raise InvalidInput(FOLDER, f"has more than {MAX_ENTRIES} entries")
            if not entry.name.endswith(_ENDING):
                continue
            if not _NAME.fullmatch(entry.name):
                raise InvalidInput(
                    FOLDER,
                    f"has a file {entry.name!r}: a name has up to 100 letters, digits,"
                    " dots, dashes and underscores",
                )
            names.append(entry.name)
    return sorted(names)


def _content(folder: int, name: str) -> bytes:
    path = f"{FOLDER}/{name}"
    try:
        kind = os.lstat(name, dir_fd=folder).st_mode
        if stat.S_ISLNK(kind):
            raise InvalidInput(path, "is a link: it has to be a file")
        if not stat.S_ISREG(kind):
            raise InvalidInput(path, "is no plain file")
        fd = os.open(name, _FILE, dir_fd=folder)
    except OSError as error:
        raise InvalidInput(path, f"cannot be read: {error.strerror}") from None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInput(path, "is no plain file")
        return _all_of(fd, path)
    except OSError as error:
        raise InvalidInput(path, f"cannot be read: {error.strerror}") from None
    finally:
        os.close(fd)


def _all_of(fd: int, path: str) -> bytes:
    data = b""
    while piece := os.read(fd, MAX_FILE_BYTES + 1 - len(data)):
        data += piece
        if len(data) > MAX_FILE_BYTES:
            raise InvalidInput(path, f"has more than {MAX_FILE_BYTES} bytes")
    return data
