"""Removing everything that is ours: a home, its sockets, our folder in repositories.

Nothing else is touched. What lies in the home and has no name of ours stays, with the
home around it; and so does what other homes have put into a repository.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from forge_actors.domain.damage import MARKER
from forge_actors.domain.errors import NotFound, Refused, StoreFailed
from forge_actors.edges.git.entries import forget_worktree
from forge_actors.edges.git.ids import drop_ids, known_ids
from forge_actors.edges.sqlite.salvage import marks_of
from forge_actors.runtime.homes import (
    FOLDERS,
    LOCK_FILE,
    SHARED_IDS,
    STORE_FILE,
    is_ours,
    refuse_living_agent,
)
from forge_actors.runtime.ids import was_made_since
from forge_actors.runtime.ownership import own_home
from forge_actors.runtime.worktree_folders import saved_work, worktree_folders

#: Where the stores of a home are, the one in use first.
STORES = (STORE_FILE, "damaged/*.sqlite", "replaced/*.sqlite")


class Plan(NamedTuple):
    """Everything that a purge removes, and what it leaves alone."""

    home: Path
    #: What is in the home, sockets elsewhere behind it.
    files: list[Path]
    #: Common directories of repositories, each with the ids there that are ours.
    repositories: dict[str, list[str]]
    #: What else is in the home.
    strangers: list[Path]
    #: Whether a store could not be read, so that repositories may be missing.
    unread: bool
    #: Worktrees of jobs in the home. What was done in them may be nowhere else.
    worktrees: list[Path]

    def paths(self) -> list[str]:
        """All that goes, as a person reads it."""
        ours = [f"{common}/forge-actors" for common in self.repositories]
        return [*map(str, self.files), *ours]


def plan(home: Path) -> Plan:
    """Look for everything of ours.

    Raises:
        NotFound: there is no home, or it is none of ours.
    """
    if not any((home / name).exists() for name in (STORE_FILE, MARKER, LOCK_FILE)):
        raise NotFound(f"{home} is no home of a service")
    ids, unread = _ids(home)
    entries = sorted(home.iterdir())
    files = [path for path in entries if is_ours(path.name)]
    repositories = {common: mine for common in ids if (mine := _mine(common, ids))}
    strangers = [path for path in entries if not is_ours(path.name)]
    sockets, worktrees = _sockets(home), worktree_folders(home)
    return Plan(home, [*files, *sockets], repositories, strangers, unread, worktrees)


def purge(home: Path, *, worktrees: bool = False) -> Plan:
    """Remove all of it, worktrees of jobs only if that is said.

    Raises:
        NotFound: as `plan`. Refused: the home is served, or jobs of it still run, or it
            has worktrees.
        StoreFailed: something cannot be removed; what is left is removed by the next.
    """
    plan(home)
    with own_home(home):
        refuse_living_agent(home)
        found = plan(home)
        saved = [] if worktrees else saved_work(home)
        if saved:
            raise Refused(
                f"{home} has what was saved of {len(saved)} worktrees, which may be"
                f" nowhere else ({saved[0]}): forge-actors worktree restore makes them"
                " again; give --worktrees to remove it"
            )
        if found.worktrees and not worktrees:
            raise Refused(
                f"{home} has {len(found.worktrees)} worktrees of jobs, and what was"
                " done in them may be nowhere else: remove them first with"
                " forge-actors worktree remove, which keeps that, or give --worktrees"
            )
        try:
            for folder in found.worktrees:
                forget_worktree(str(folder))
            for common, ids in found.repositories.items():
                drop_ids(common, ids)
            # Without its lock a home is free for others: that goes last.
            for path in sorted(found.files, key=_is_lock):
                _remove(path, home)
        except OSError as error:
            where = error.filename or home
            raise StoreFailed(f"{where} cannot be removed: {error.strerror}") from None
        with suppress(OSError):
            home.rmdir()
    return found


def _ids(home: Path) -> tuple[dict[str, list[str]], bool]:
    """The ids that this home gave, by the common directories they were written to."""
    found: dict[str, list[str]] = {}
    unread = False
    shared: set[str] = set()
    with suppress(FileNotFoundError):
        shared.update((home / SHARED_IDS).read_text("ascii", "replace").split())
    for pattern in STORES:
        for path in sorted(home.glob(pattern)):
            try:
                for common, repo, added_at in marks_of(path):
                    # An older id is that of another home, which may still need it.
                    if repo not in shared and was_made_since(repo, added_at):
                        found.setdefault(common, []).append(repo)
            except StoreFailed:
                unread = True
    return found, unread


def _mine(common: str, ids: dict[str, list[str]]) -> list[str]:
    return sorted(known_ids(common) & set(ids[common]))


def _sockets(home: Path) -> list[Path]:
    """Sockets that have no room in the home, and the folder they are in."""
    found: list[Path] = []
    for note in sorted(home.glob("*.sock.path")):
        with suppress(OSError, UnicodeDecodeError):
            place = Path(note.read_text("utf-8").strip())
            status = place.parent.lstat()
            private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            if private and place.name in ("control.sock", "mcp.sock", "agent.sock"):
                found.append(place)
    folders = dict.fromkeys(place.parent for place in found)
    # The folder around them is that of all homes; it goes with the last of them.
    around = dict.fromkeys(folder.parent for folder in folders)
    return [*(place for place in found if os.path.lexists(place)), *folders, *around]


def _is_lock(path: Path) -> bool:
    return path.name == LOCK_FILE


def _remove(path: Path, home: Path) -> None:
    try:
        if not path.is_dir() or path.is_symlink():
            path.unlink()
        elif path.parent == home and path.name in FOLDERS:
            shutil.rmtree(path)
        else:
            with suppress(OSError):  # a socket of another home is in it
                path.rmdir()
    except FileNotFoundError:
        pass
