"""Whether a store can be trusted, and what becomes of one that cannot.

A damaged store is moved, with its log, to a folder of its home and never deleted. A
marker in the home is written before that: a start that finds it is refused, until
somebody has chosen how to go on.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import apsw

from forge_actors.domain.damage import (
    FOLDER,
    MARKER,
    SetAside,
    read_marker,
    told,
    ways_on,
    write_marker,
)
from forge_actors.domain.errors import StoreDamaged

#: The files of one store, its own last: as long as it is there, a move is not done.
SUFFIXES = ("-shm", "-wal", "")

DAMAGE = (apsw.CorruptError, apsw.NotADBError)


class Damage(Exception):
    """The store is not whole; the message says what was found."""


def look_through(db: apsw.Connection) -> None:
    """Raise Damage if a page or a row of an opened store is not what it should be.

    110,000 jobs take 0.06 s, so every start affords it.
    """
    found = str(db.execute("PRAGMA quick_check(1)").fetchall()[0][0])
    if found != "ok":
        raise Damage(found.strip().splitlines()[-1])


def found_in_use(error: BaseException) -> StoreDamaged:
    """What is said of a store that turns out to be damaged while it is used."""
    return StoreDamaged(
        f"the store is damaged ({error}); the next start looks through it and sets it"
        " aside"
    )


def refuse_marked(path: Path) -> None:
    """Refuse a store that was set aside before.

    Raises:
        StoreDamaged: the marker is there. A move that a crash cut off is finished.
    """
    found = marked(path.parent)
    if found is None:
        return
    if found.place and not Path(found.place).exists():
        with suppress(OSError):
            move(path, Path(found.place))
    raise StoreDamaged(told(str(path.parent), found))


def marked(home: Path) -> SetAside | None:
    """What the marker of a home says, if there is one."""
    try:
        text = (home / MARKER).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        return SetAside(f"{MARKER} cannot be read: {error.strerror}", "", 0.0)
    return read_marker(text)


def set_aside(path: Path, reason: str) -> StoreDamaged:
    """Move a damaged store out of the way; the error that says so."""
    home = path.parent
    there = any(Path(f"{path}{suffix}").exists() for suffix in SUFFIXES)
    place = free_place(home / FOLDER) if there else None
    found = SetAside(reason, str(place or ""), time.time())
    try:
        if place is not None:
            place.parent.mkdir(mode=0o700, exist_ok=True)
        mark(home, found)
        if place is not None:
            move(path, place)
    except OSError as error:
        # It stays where it is, so the next start finds the same.
        return StoreDamaged(
            f"the store of {home} is damaged ({reason}) and cannot be set aside"
            f" ({error.strerror}); nothing starts here until you choose:"
            f" {ways_on(str(home))}"
        )
    return StoreDamaged(told(str(home), found))


def free_place(folder: Path) -> Path:
    """A name for a store in this folder that is not taken."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    for number in range(1, 10_000):
        place = folder / f"store-{stamp}{'' if number == 1 else f'-{number}'}.sqlite"
        if not any(Path(f"{place}{suffix}").exists() for suffix in SUFFIXES):
            return place
    raise FileExistsError(17, "too many stores were set aside in one second", folder)


def mark(home: Path, found: SetAside) -> None:
    """Write the marker; durable when this returns."""
    fresh = home / f"{MARKER}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with open(os.open(fresh, flags, 0o600), "wb") as file:
        file.write(write_marker(found))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(home / MARKER)
    sync_folder(home)


def unmark(home: Path) -> None:
    (home / MARKER).unlink(missing_ok=True)
    sync_folder(home)


def move(path: Path, place: Path) -> None:
    """Move the files of a store that nobody has open."""
    for suffix in SUFFIXES:
        with suppress(FileNotFoundError):
            os.rename(f"{path}{suffix}", f"{place}{suffix}")
    sync_folder(place.parent)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def had_jobs(home: Path) -> bool:
    """Whether jobs ran in this home: then it had a store that was not empty."""
    with suppress(OSError), os.scandir(home / "logs") as entries:
        return next(entries, None) is not None
    return False
