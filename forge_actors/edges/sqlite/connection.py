"""Opening the file of a store: its schema, its version, its guards."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

import apsw

from forge_actors.domain.errors import StoreFailed, StoreFromTheFuture
from forge_actors.edges.sqlite.checking import (
    DAMAGE,
    Damage,
    had_jobs,
    look_through,
    refuse_marked,
    set_aside,
)
from forge_actors.edges.sqlite.statements import migrations

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Marks the file as ours ("Fgct"), so that no other program's database is taken.
APPLICATION_ID = 0x46676374
#: Milliseconds a connection waits for another one's lock.
BUSY_TIMEOUT_MS = 5000
#: Pages after which the log is folded back into the file.
CHECKPOINT_PAGES = 4000
#: Bytes that have to fit beside a store that was full before it takes anything new.
PROBE_BYTES = 64 << 10
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
#: The log is made so long beforehand only where this many times its length is free.
ROOM_TO_GROW = 4


def open_connections(path: Path) -> tuple[apsw.Connection, apsw.Connection]:
    """The writing and the reading connection to the store at `path`.

    Raises:
        StoreFromTheFuture: it has a newer schema.
        StoreDamaged: it is damaged, and was set aside.
        StoreFailed: it cannot be opened, or is not a store of ours.
    """
    refuse_marked(path)
    try:
        _make(path)
        writer = apsw.Connection(str(path))
        try:
            _prepare(writer, path)
            reader = open_reader(path)
        except BaseException:
            writer.close()
            raise
    except Damage as damage:
        raise set_aside(path, str(damage)) from None
    except DAMAGE as error:
        if not _was_ours(path):
            raise StoreFailed(f"the store {path} cannot be opened: {error}") from error
        raise set_aside(path, str(error)) from error
    except (apsw.Error, OSError) as error:
        failure = cause(error)
        reason = str(failure)
        if isinstance(failure, apsw.IOError) and not has_room(path):
            # What it says of a full disk depends on the file that it was at.
            reason = f"{os.strerror(errno.ENOSPC)} ({reason})"
        raise StoreFailed(f"the store {path} cannot be opened: {reason}") from error
    return writer, reader


@contextmanager
def opened_alone(path: Path) -> Iterator[apsw.Connection]:
    """A store that nobody else has open, made if there is none, with our schema.

    Raises:
        StoreFailed: it cannot be made or written.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        db = apsw.Connection(str(path))
        try:
            _prepare(db, path)
            yield db
        finally:
            db.close()
    except (apsw.Error, OSError) as error:
        raise StoreFailed(f"{path} cannot be written: {cause(error)}") from error


def _make(path: Path) -> None:
    """Make an empty file, unless there is one, or should be one that is not empty."""
    try:
        status = path.stat()
    except FileNotFoundError:
        if had_jobs(path.parent):
            raise Damage(
                "it is gone, and the output of its jobs is still here"
            ) from None
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        return
    if not stat.S_ISREG(status.st_mode):
        raise StoreFailed(f"the store {path} cannot be opened: it is no file")
    if status.st_size == 0 and had_jobs(path.parent):
        raise Damage("it is empty, and the output of its jobs is still here")


def _was_ours(path: Path) -> bool:
    """Whether a file that is no database any more was a store of ours.

    Its header may be gone; but only a home where jobs ran has their output.
    """
    with path.open("rb") as file:
        header = file.read(72)
    return header[68:] == APPLICATION_ID.to_bytes(4, "big") or had_jobs(path.parent)


def grow_log(db: apsw.Connection, folder: Path) -> None:
    """Make the write-ahead log as large as it gets, once, before it is needed.

    A commit that makes the file longer also has to save where its new blocks are, which
    takes several times as long as one that writes over old ones. After a checkpoint
    SQLite begins at the front again and keeps the length. The store grows by as much,
    as free pages that later rows use. Where the disk of `folder` has little room it is
    left to those who need it more.
    """
    size = CHECKPOINT_PAGES * number_of(db, "PRAGMA page_size")
    disk = os.statvfs(folder)
    if disk.f_bavail * disk.f_frsize < ROOM_TO_GROW * size:
        return
    try:
        with db:
            # One is there if a service was killed while it did this.
            db.execute("DROP TABLE IF EXISTS filler")
            db.execute("CREATE TABLE filler (content BLOB) STRICT")
            db.execute("INSERT INTO filler VALUES (zeroblob(?))", (size,))
        with db:
            db.execute("DROP TABLE filler")
    except apsw.Error as error:
        if not isinstance(cause(error), apsw.FullError):
            raise
        return
    db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()


def has_room(path: Path) -> bool:
    """Whether more than a few pages can be written beside the store at `path`.

    What was refused is gone by now, so that less than it needs may fit again: a store
    that took that for room would be full and not full in turns.
    """
    probe = path.with_name(f".{path.name}.room")
    try:
        fd = os.open(probe, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            return os.write(fd, bytes(PROBE_BYTES)) == PROBE_BYTES
        finally:
            os.close(fd)
            os.unlink(probe)
    except OSError as error:
        return error.errno not in _NO_ROOM


def cause(error: Exception) -> Exception:
    """What went wrong. On a full disk SQLite rolls back by itself, and the end of the
    transaction fails because there is none any more."""
    inner = error.__context__
    return inner if isinstance(inner, apsw.Error) else error


def open_reader(path: Path) -> apsw.Connection:
    """A connection that sees what is committed and can change nothing."""
    reader = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    reader.set_busy_timeout(BUSY_TIMEOUT_MS)
    return reader


def _prepare(db: apsw.Connection, path: Path) -> None:
    db.set_busy_timeout(BUSY_TIMEOUT_MS)
    # Closing the last connection would fold what a crash left in the log into a store
    # that is not for us to touch.
    left = path.with_name(f"{path.name}-wal").exists()
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(left))
    version = number_of(db, "PRAGMA user_version")
    owner = number_of(db, "PRAGMA application_id")
    steps = migrations()
    newest = max(steps)
    if version > newest:
        raise StoreFromTheFuture(
            f"the store {path} has schema {version}, this release knows up to"
            f" {newest}: use the newer forge-actors, nothing was touched"
        )
    tables = number_of(db, "SELECT count(*) FROM sqlite_schema")
    if owner != APPLICATION_ID and tables:
        raise StoreFailed(f"{path} is a database of another program")
    if tables:
        look_through(db)
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    db.execute("PRAGMA journal_mode = WAL").fetchall()
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA foreign_keys = ON")
    db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}").fetchall()
    db.execute("PRAGMA journal_size_limit = 67108864").fetchall()
    for number in range(version + 1, newest + 1):
        with db:
            db.execute(steps[number])
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {number}")


def number_of(db: apsw.Connection, query: str) -> int:
    """The one number that a query answers with."""
    value = db.execute(query).fetchall()[0][0]
    assert isinstance(value, int)
    return value
