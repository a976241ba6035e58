"""Restoring the store of a home, so that nothing is lost and nothing runs twice.

The new store is made beside the old one and brought up to what is known to have
happened since. Only then the two are exchanged, behind the marker of a damaged store:
whatever ends us in between, no start takes half of it for a store.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from time import time
from typing import Literal, NamedTuple

from forge_actors.domain.damage import FOLDER, SetAside
from forge_actors.domain.errors import InvalidInput, NotFound, StoreFailed
from forge_actors.edges.sqlite.checking import (
    free_place,
    mark,
    marked,
    move,
    unmark,
)
from forge_actors.edges.sqlite.connection import opened_alone
from forge_actors.edges.sqlite.copying import (
    Contents,
    contents_of,
    copy_store,
    opened_to_read,
)
from forge_actors.edges.sqlite.merging import Merge, Settled
from forge_actors.edges.sqlite.retelling import retell
from forge_actors.edges.sqlite.salvage import NOTHING, last_event, read_store
from forge_actors.runtime.homes import REPLACED, STORE_FILE, refuse_living_agent
from forge_actors.runtime.ownership import own_home, prepare_home
from forge_actors.runtime.traces import traces

#: From a backup, from what can still be read of the damaged store, or from nothing.
How = Literal["backup", "salvage", "empty"]
#: The folder in a home where the new store is made.
WORK = "restoring"


class Restored(NamedTuple):
    """What was restored, and where the store is that was there before, if any was."""

    contents: Contents
    settled: Settled
    replaced: str | None
    #: Whether everything could be read of the store that was there before.
    whole: bool


def restore(home: Path, how: How, file: Path | None, now: float) -> Restored:
    """Give a home that nothing serves another store.

    Raises:
        Refused: it is served, or jobs of it still run.
        NotFound: there is nothing to salvage.
        InvalidInput: `file` is the store of this home.
        StoreDamaged, StoreFromTheFuture, StoreFailed: `file` cannot be used.
    """
    home = prepare_home(home)
    with own_home(home):
        refuse_living_agent(home)
        present = home / STORE_FILE
        _finish_move(present)
        latest = _latest(home)
        if file is not None and latest is not None and file.resolve() == present:
            raise InvalidInput("file", f"{file} is the store of this home itself")
        if how == "salvage" and latest is None:
            raise NotFound(f"there is no store in {home} to be salvaged")
        work = _fresh_folder(home / WORK)
        target = work / STORE_FILE
        if file is not None:
            copy_store(file, target)
        settled, whole = _settle(home, target, latest, how, now)
        with opened_to_read(target) as db:
            contents = contents_of(db, target)
        replaced = _exchange(home, target, how)
        shutil.rmtree(work, ignore_errors=True)
    return Restored(contents, settled, replaced, whole)


def _finish_move(present: Path) -> None:
    """Move a damaged store out of the way if a crash has kept it from that."""
    found = marked(present.parent)
    if found is not None and found.place and not Path(found.place).exists():
        move(present, Path(found.place))


def _latest(home: Path) -> Path | None:
    """The store that knows most of what happened last."""
    present, found = home / STORE_FILE, marked(home)
    if present.exists():
        return present
    if found is not None and found.place and Path(found.place).exists():
        return Path(found.place)
    return None


def _fresh_folder(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise StoreFailed(f"{folder} cannot be made: {error.strerror}") from None
    return folder


def _settle(
    home: Path, target: Path, latest: Path | None, how: How, now: float
) -> tuple[Settled, bool]:
    """Bring the new store up to what is known, and whether all of it is known."""
    last = NOTHING if latest is None else read_store(latest)
    others = [read_store(path) for path in _earlier(home) if path != latest]
    left = traces(home)
    lived = bool(latest or others or left or marked(home))
    whole = last.whole or not lived
    with opened_alone(target) as db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("PRAGMA defer_foreign_keys = ON")
        merge = Merge(db, now)
        merge.repositories(last, others)
        merge.owner([last, *others])
        merge.worktrees([last, *others])
        merge.usage([last, *others])
        settled = Settled()
        if how != "empty":
            merge.pauses(last)
            merge.accounts(last)
            merge.policy(last)
            merge.marks(last)
            merge.schedules(last)
            merge.trust(last)
            merge.history(last)
            settled = merge.jobs(last, others, left, lived=lived)
        data = {"how": how, **settled._asdict()}
        after = max(last_event(store) for store in (last, *others))
        retell(db, now, data, after=after, whole=whole)
        db.execute("COMMIT")
    return settled, whole


def _earlier(home: Path) -> list[Path]:
    """Stores that were set aside before."""
    folders = (home / FOLDER, home / REPLACED)
    return [path for folder in folders for path in sorted(folder.glob("*.sqlite"))]


def _exchange(home: Path, target: Path, how: How) -> str | None:
    """Put the new store in the place of the old one; where that is then."""
    present, found = home / STORE_FILE, marked(home)
    place = found.place if found is not None else ""
    try:
        if present.exists():
            (home / REPLACED).mkdir(mode=0o700, exist_ok=True)
            aside = free_place(home / REPLACED)
            mark(home, SetAside(f"a restore ({how}) was cut off", str(aside), time()))
            move(present, aside)
            place = str(aside)
        move(target, present)
        unmark(home)
    except OSError as error:
        raise StoreFailed(
            f"the store of {home} cannot be exchanged: {error.strerror}"
        ) from None
    return place or None
