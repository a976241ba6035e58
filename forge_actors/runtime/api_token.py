"""The token of a home: what a program shows that asks its service over TCP.

It is made when TCP is opened for the first time. It is in no backup and no export, no
argument, status or log; another one is made where the file was removed.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput
from forge_actors.runtime.homes import DRAFT, TOKEN_FILE

if TYPE_CHECKING:
    from pathlib import Path

_TOKEN = re.compile(r"[A-Za-z0-9_-]{32,256}")


def api_token(home: Path) -> str:
    """The token of a home, made now if it has none. Call it only as its owner.

    Raises:
        InvalidInput: it cannot be read or saved, others could read it, or it is none.
    """
    path = home / TOKEN_FILE
    try:
        return _read(path) or _make(path)
    except OSError as error:
        raise InvalidInput("home", f"{path}: {error.strerror}") from None


def _read(path: Path) -> str | None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        file = os.open(path, flags)
    except FileNotFoundError:
        return None
    with open(file, encoding="ascii", errors="replace") as opened:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise InvalidInput("home", f"{path} is no file of ours; remove it")
        if found.st_mode & 0o077:
            problem = "could be read by others; remove it, and another one is made"
            raise InvalidInput("home", f"{path} {problem}")
        token = opened.read(300).removesuffix("\n")
    if not _TOKEN.fullmatch(token):
        raise InvalidInput("home", f"{path} holds no token of 32 letters and digits")
    return token


def _make(path: Path) -> str:
    token = secrets.token_urlsafe(32)
    fresh = path.with_name(f"{path.name}{DRAFT}")
    with suppress(FileNotFoundError):
        fresh.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with open(os.open(fresh, flags, 0o600), "w", encoding="ascii") as file:
        file.write(f"{token}\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    return token
