"""One runtime a home: a lock of the kernel, so that a dead owner never holds it."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK_FILE = "runtime.lock"


def prepare_home(home: Path) -> Path:
    """Make the home's folders, readable by their owner alone; links are resolved.

    Raises:
        InvalidInput: it cannot be made, or belongs to somebody else.
    """
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        home = home.resolve()
        status = home.stat()
        if status.st_uid != os.geteuid():
            raise InvalidInput("home", f"{home} belongs to another user")
        if status.st_mode & 0o077:
            home.chmod(0o700)
        for folder in ("logs", "receipts"):
            (home / folder).mkdir(mode=0o700, exist_ok=True)
    except FileExistsError as error:
        raise InvalidInput("home", f"{error.filename} is no folder") from None
    except OSError as error:
        raise InvalidInput("home", f"{home}: {error.strerror}") from None
    return home


@contextmanager
def own_home(home: Path) -> Iterator[None]:
    """Own the home while the block lasts.

    Raises:
        Refused: another runtime owns it; its pid is named.
        InvalidInput: the lock file cannot be made or written to.
    """
    path = home / LOCK_FILE
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InvalidInput("home", f"{path}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
            raise Refused(
                f"another service (pid {owner or 'unknown'}) runs on {home};"
                " stop it first: forge-actors stop, or wait if it ends already"
            ) from None
        try:
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode("ascii"), 0)
        except OSError as error:
            raise InvalidInput("home", f"{path}: {error.strerror}") from None
        yield
    finally:
        os.close(lock)
