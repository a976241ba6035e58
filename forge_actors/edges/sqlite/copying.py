"""Copying a store while it is in use, into one file that is whole or not there."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import apsw

from forge_actors.domain.errors import (
    StoreDamaged,
    StoreFailed,
    StoreFromTheFuture,
)
from forge_actors.domain.jobs import RESERVED, TERMINAL
from forge_actors.edges.sqlite.checking import (
    DAMAGE,
    Damage,
    look_through,
    sync_folder,
)
from forge_actors.edges.sqlite.connection import (
    APPLICATION_ID,
    BUSY_TIMEOUT_MS,
    number_of,
)
from forge_actors.edges.sqlite.statements import migrations

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Pages copied in one step; between two of them an interrupt is heard.
STEP_PAGES = 2048


class Contents(NamedTuple):
    """What a store holds."""

    size: int
    schema: int
    repositories: int
    waiting: int
    reserved: int
    ended: int


def copy_store(source: Path, target: Path) -> Contents:
    """Copy a store of ours to `target`, which appears whole, or not at all.

    What is copied is the store of one moment, whatever is written to it meanwhile;
    nobody who writes is held up.

    Raises:
        StoreFromTheFuture, StoreDamaged, StoreFailed: as it says; no file is left.
    """
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
        os.close(os.open(part, flags, 0o600))
        with opened_copy(source) as db:
            _copy(db, part)
        contents = _finish(part)
        part.replace(target)
        sync_folder(target.parent)
    except (OSError, apsw.FullError, apsw.IOError) as error:
        reason = _words(error)
        raise StoreFailed(f"{source} was not copied to {target}: {reason}") from error
    finally:
        for suffix in ("", "-journal"):
            with suppress(OSError):
                os.unlink(f"{part}{suffix}")
    return contents


@contextmanager
def opened_copy(path: Path) -> Iterator[apsw.Connection]:
    """A store that is only read, served or not.

    Raises:
        StoreFromTheFuture: a newer release wrote it.
        StoreDamaged: it is not whole. StoreFailed: it is no store of ours.
    """
    try:
        with opened_to_read(path) as db:
            check_ours(db, path)
            look_through(db)
            yield db
    except Damage as damage:
        raise StoreDamaged(f"the store {path} is damaged: {damage}") from None
    except DAMAGE as error:
        raise StoreDamaged(f"{path} is damaged, or no store: {error}") from error
    except (apsw.CantOpenError, apsw.PermissionsError, apsw.AuthError) as error:
        raise StoreFailed(f"{path} cannot be opened: {error}") from error


def check_ours(db: apsw.Connection, path: Path) -> None:
    """Raises StoreFromTheFuture, or StoreFailed if another program made it."""
    if number_of(db, "PRAGMA application_id") != APPLICATION_ID:
        raise StoreFailed(f"{path} is no store of forge-actors")
    version = number_of(db, "PRAGMA user_version")
    newest = max(migrations())
    if version > newest:
        raise StoreFromTheFuture(
            f"{path} has schema {version}, this release knows up to {newest}:"
            " use the newer forge-actors, nothing was touched"
        )


def contents_of(db: apsw.Connection, path: Path) -> Contents:
    """How much there is in a store."""
    counts: dict[str, int] = {}
    for state, count in db.execute("SELECT state, count(*) FROM job GROUP BY state"):
        counts[str(state)] = int(count)
    ended = sum(count for state, count in counts.items() if state in TERMINAL)
    reserved = sum(count for state, count in counts.items() if state in RESERVED)
    known = "SELECT count(*) FROM repository WHERE removed_at IS NULL"
    waiting = sum(counts.values()) - ended - reserved
    return Contents(
        size=path.stat().st_size,
        schema=number_of(db, "PRAGMA user_version"),
        repositories=number_of(db, known),
        waiting=waiting,
        reserved=reserved,
        ended=ended,
    )


@contextmanager
def opened_to_read(path: Path, *, touching: bool = True) -> Iterator[apsw.Connection]:
    """A connection that can change nothing, also where nothing can be written.

    A reader makes files beside a store that nobody has open, unless it is told not to
    touch the folder: then what a process that opens the store now does is not seen.
    """
    if not path.is_file():
        problem = os.strerror(errno.EISDIR if path.is_dir() else errno.ENOENT)
        raise StoreFailed(f"{path} cannot be opened: {problem}")
    uri = f"file:{quote(str(path))}?mode=ro"
    touching = touching and os.access(path.parent, os.W_OK)
    if not (touching or Path(f"{path}-wal").exists()):
        uri += "&immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    db = apsw.Connection(uri, flags=flags)
    try:
        db.set_busy_timeout(BUSY_TIMEOUT_MS)
        yield db
    finally:
        db.close()


def _copy(source: apsw.Connection, part: Path) -> None:
    # As long as this read lasts the copy cannot be told to begin again by those who
    # write to the store; only its log grows meanwhile.
    source.execute("BEGIN")
    source.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    try:
        target = apsw.Connection(str(part))
        try:
            with target.backup("main", source, "main") as backup:
                while not backup.done:
                    backup.step(STEP_PAGES)
        finally:
            target.close()
    finally:
        source.execute("ROLLBACK")


def _finish(part: Path) -> Contents:
    """Make the copy one file without a log, as small as it can be, and durable."""
    db = apsw.Connection(str(part))
    try:
        db.execute("PRAGMA journal_mode = DELETE").fetchall()
        # A store keeps room for its log; a copy of it would be mostly that.
        free = number_of(db, "PRAGMA freelist_count")
        if free * 2 > number_of(db, "PRAGMA page_count"):
            db.execute("VACUUM")
        contents = contents_of(db, part)
    finally:
        db.close()
    fd = os.open(part, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    return contents


def _words(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
