"""One runtime a home: a lock of the kernel, so that a dead owner never holds it.

The lock counts. What is written into its file only tells others who holds it: a file
that a dead process left there, or one of an earlier boot, keeps nobody out.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors import __version__
from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.edges.machine import own_identity
from forge_actors.edges.sqlite.guard import owner_from
from forge_actors.runtime.installation import PINNED_BY, installation_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from contextlib import AbstractAsyncContextManager

    from forge_actors.domain.ownership import Owner
    from forge_actors.edges.sqlite.store import SqliteStore

LOCK_FILE = "runtime.lock"
#: Bytes of the lock file that are looked at.
MAX_RECORD = 4096


class Incarnation(Struct, frozen=True):
    """One start of a runtime, and no other."""

    instance: str
    process: ProcessIdentity
    release: str


def new_incarnation(release: str = __version__) -> Incarnation:
    """Who this process is from now on, as a runtime of this release."""
    return Incarnation(f"runtime_{secrets.token_hex(16)}", own_identity(), release)


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
def own_home(home: Path, release: str = __version__) -> Iterator[Incarnation]:
    """Own the home while the block lasts, as whom it says.

    Raises:
        Refused: another runtime owns it; its pid and instance are named.
        InstallationMismatch: the home is not the one that the environment names.
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
            raise Refused(
                f"another service ({_named(_read(lock))}) runs on {home};"
                " stop it first: forge-actors stop, or wait if it ends already"
            )
        installation_id(home, os.environ.get(PINNED_BY))
        me = new_incarnation(release)
        try:
            _write(lock, _record(me))
        except OSError as error:
            raise InvalidInput("home", f"{path}: {error.strerror}") from None
        yield me


@asynccontextmanager
async def taken_over(
    opening: AbstractAsyncContextManager[SqliteStore], me: Incarnation, now: float
) -> AsyncIterator[tuple[SqliteStore, Owner | None]]:
    """A store that is ours from here on, and whose it was before.

    Nobody has saved anything in it by then.

    Raises:
        StoreFailed: that cannot be saved.
    """
    async with opening as store:
        before = [owner_from(row) for row in store.read("owner")]
        store.take_over(me.instance, me.process, me.release, now)
        yield store, before[0] if before else None


def _lock(fd: int) -> bool:
    """Lock it, unless somebody else has."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def tell_serving(home: Path, *, serving: bool) -> None:
    """Tell those who find no socket whether the owner of the home should have one."""
    # Without it nothing is lost but an explanation. A lock file that somebody removed
    # is not made again: it would not be the one that is locked.
    with suppress(OSError), open(home / LOCK_FILE, "r+b") as lock:
        record = _read(lock.fileno())
        _write(lock.fileno(), {**record, "serving": serving})


def _record(me: Incarnation) -> dict[str, object]:
    return {
        "pid": me.process.pid,
        "serving": False,
        "instance": me.instance,
        "start_ticks": me.process.start_ticks,
        "boot_id": me.process.boot_id,
        "namespace": me.process.namespace,
        "release": me.release,
    }


def _write(lock: int, record: Mapping[str, object]) -> None:
    line = json.dumps(record).encode("ascii") + b"\n"
    # In this order there is no moment in which it says nothing.
    os.pwrite(lock, line, 0)
    os.ftruncate(lock, len(line))


def _read(lock: int) -> dict[str, object]:
    """What its owner wrote into it, as far as that can be read."""
    try:
        record = json.loads(os.pread(lock, MAX_RECORD, 0))
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _named(record: Mapping[str, object]) -> str:
    """The holder of a lock, as people can look for it."""
    pid, instance = record.get("pid"), record.get("instance")
    if not isinstance(pid, int) or not isinstance(instance, str):
        return "pid unknown"
    return f"pid {pid}, {instance}"
