"""Locks that the git programs of an ended job left in a checkout.

Git removes its locks unless it is killed; then every later git program of the checkout
fails, for weeks. A lock goes only if it came while the job ran, and nobody lives who
could hold it: no git program in the checkout, and no process with the lock open.
"""

from __future__ import annotations

import logging
import os
import stat
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

from forge_actors.domain.worktrees import GIT_PLACES, LeftLocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Seconds that the time of a file may be behind the clock: a tick, and one to spare.
#: More, and the lock of a person who was there just before would count as the job's.
_COARSE = 0.02
#: Folders above a job's in which its repository is looked for.
_MAX_DEPTH = 64
#: With these git works somewhere else than in the folder it is in.
_OPTIONS = ("-C", "--git-dir", "--work-tree")
_log = logging.getLogger(__name__)


class GitLocks:
    """The port `Locks`. `shared` says that others can write to a folder unseen."""

    def __init__(self, shared: Callable[[str], str | None]) -> None:
        self._shared = shared

    def remove_left(self, folder: str, since: float, until: float) -> LeftLocks:
        """See the port. Where there is no lock it costs a look at two folders."""
        try:
            found = _checkout(folder)
            locks = [] if found is None else _locks(found[1])
        except OSError:
            return LeftLocks()
        if found is None or not locks:
            return LeftLocks()
        removed, kept = [], []
        for path in locks:
            why = self._why_kept(path, found[0], since, until)
            if why is None:
                with suppress(FileNotFoundError):
                    os.unlink(path)
                _log.warning("removed %s, which a job that has ended left", path)
                removed.append(path)
            else:
                kept.append((path, why))
        return LeftLocks(tuple(removed), tuple(kept))

    def _why_kept(self, path: str, root: str, since: float, until: float) -> str | None:
        """Why a lock may be somebody else's, or None."""
        try:
            status = os.lstat(path)
        except OSError as error:
            return f"it cannot be looked at: {error.strerror}"
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return "it is another user's, or no file"
        if not since - _COARSE <= status.st_mtime <= until:
            return "it did not come while the job ran"
        kind = self._shared(path)
        if kind is not None:
            return f"it is on {kind}, where others are not seen"
        return _living(path, root, (status.st_dev, status.st_ino))


def _checkout(folder: str) -> tuple[str, str] | None:
    """The root of the work tree around a folder, and its git directory."""
    root = os.path.realpath(folder)
    for _ in range(_MAX_DEPTH):
        path = os.path.join(root, ".git")
        with suppress(FileNotFoundError, NotADirectoryError):
            if stat.S_ISDIR(os.lstat(path).st_mode):
                return root, path
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                line = file.read(8192).removesuffix("\n")
            git_dir = line.removeprefix("gitdir: ")
            return None if git_dir == line else (root, os.path.join(root, git_dir))
        if root == "/":
            break
        root = os.path.dirname(root)
    return None


def _locks(git_dir: str) -> list[str]:
    with os.scandir(git_dir) as entries:
        return sorted(each.path for each in entries if each.name.endswith(".lock"))


def _living(path: str, root: str, identity: tuple[int, int]) -> str | None:
    """Who may hold a lock in this work tree, or None."""
    try:
        with os.scandir("/proc") as entries:
            pids = [entry.name for entry in entries if entry.name.isdecimal()]
    except OSError:
        return "nobody can tell here who holds it"
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            if _is_git_in(pid, root) or _has_open(pid, identity):
                return f"process {pid} may hold it"
    return None


def _is_git_in(pid: str, root: str) -> bool:
    """A git program that works in this tree, as far as one can see."""
    with open(f"/proc/{pid}/comm", "rb") as file:
        if not file.read(16).startswith(b"git"):
            return False
    try:
        places = list(_places(pid))
    except PermissionError:
        return True
    return any(place == root or place.startswith(f"{root}/") for place in places)


def _places(pid: str) -> Iterator[str]:
    """The folders that a git program works in, or is told to."""
    cwd = os.readlink(f"/proc/{pid}/cwd")
    yield cwd
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        words = os.fsdecode(file.read(1 << 16)).split("\0")
    with open(f"/proc/{pid}/environ", "rb") as file:
        variables = os.fsdecode(file.read(1 << 20)).split("\0")
    told = [after for word, after in pairwise(words) if word in _OPTIONS]
    told += [
        value
        for word in (*words, *variables)
        for name, _, value in (word.partition("="),)
        if name in _OPTIONS or name in GIT_PLACES
    ]
    for place in told:
        yield os.path.realpath(os.path.join(cwd, place))


def _has_open(pid: str, identity: tuple[int, int]) -> bool:
    """Not known of processes that may not be looked at; they are another user's, or
    no programs that would work on a checkout."""
    with suppress(PermissionError), os.scandir(f"/proc/{pid}/fd") as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                status = os.stat(entry.path)
                if (status.st_dev, status.st_ino) == identity:
                    return True
    return False
