"""One runtime a home: a lock of the kernel, so that a dead owner never holds it."""

from __future__ import annotations

import fcntl
import os
from contextlib import ExitStack, contextmanager, suppress
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
        InvalidInput: the lock file cannot be made, locked or written to.
    """
    path = home / LOCK_FILE
    with ExitStack() as stack:
        try:
            folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, folder)
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            stack.callback(os.close, lock)
            free = _lock(lock)
        except OSError as error:
            raise InvalidInput("home", f"{path}: {error.strerror}") from None
        # The folder too: somebody may remove the file while its owner lives.
        with suppress(OSError):  # some file systems know no locks of folders
            free = free and _lock(folder)
        if not free:
            words = os.pread(lock, 32, 0).decode("ascii", "replace").split()
            owner = words[0] if words else "unknown"
            raise Refused(
                f"another service (pid {owner}) runs on {home};"
                " stop it first: forge-actors stop, or wait if it ends already"
            )
        try:
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode("ascii"), 0)
        except OSError as error:
            raise InvalidInput("home", f"{path}: {error.strerror}") from None
        yield


def _lock(fd: int) -> bool:
    """Lock it, unless somebody else has."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def tell_serving(home: Path, *, serving: bool) -> None:
    """Tell those who find no socket whether the owner of the home should have one."""
    word = " serving" if serving else ""
    # Without it nothing is lost but an explanation. A lock file that somebody removed
    # is not made again: it would not be the one that is locked.
    with suppress(OSError), open(home / LOCK_FILE, "r+", encoding="ascii") as lock:
        lock.truncate()
        lock.write(f"{os.getpid()}{word}\n")
