"""What git itself has of a worktree: its entry in the repository, and the state in it.

The entry is found by where it points to, not by what lies in the tree, which a job may
have changed.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from forge_actors.edges.cleanup.worktrees.nested import MODULES

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Bytes that are read of one file of the state: a history of HEAD may be long.
MAX_STATE = 16 << 20
#: What of an entry is no state of a commit.
_NO_COMMITS = frozenset({"index", "commondir", "gitdir", "locked", MODULES})
_OID = re.compile(rb"(?<![0-9a-f])(?:[0-9a-f]{40}|[0-9a-f]{64})(?![0-9a-f])")
_REF = re.compile(r"ref: (refs/\S+)\n?")


def entry_of(common_dir: str, path: str) -> str | None:
    """The name of the entry of the worktree at a path; None if there is none."""
    wanted = {path, os.path.realpath(path)}
    for name in _names(common_dir):
        if _points_to(common_dir, name) in wanted:
            return name
    return None


def entries_below(common_dir: str, path: str) -> list[str]:
    """The entries of worktrees that lie in the tree of another one."""
    around = (f"{path}/", f"{os.path.realpath(path)}/")
    return [
        name
        for name in _names(common_dir)
        if (_points_to(common_dir, name) or "").startswith(around)
    ]


def still_of(common_dir: str, name: str, path: str) -> bool:
    """Whether an entry is of the worktree that was at a path, or half removed."""
    place = entry_path(common_dir, name)
    if os.path.islink(place) or not os.path.isdir(place):
        return False
    points = _points_to(common_dir, name)
    return points is None or points in (path, os.path.realpath(path))


def entry_path(common_dir: str, name: str) -> str:
    return os.path.join(common_dir, "worktrees", name)


def _names(common_dir: str) -> list[str]:
    try:
        return sorted(os.listdir(os.path.join(common_dir, "worktrees")))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return []


def _points_to(common_dir: str, name: str) -> str | None:
    text = _read(os.path.join(entry_path(common_dir, name), "gitdir"))
    if not text:
        return None
    place = os.fsdecode(text).rstrip("\n")
    if not os.path.isabs(place):  # git can be told to write relative ones
        place = os.path.join(entry_path(common_dir, name), place)
    place = os.path.normpath(place)
    return os.path.dirname(place) if os.path.basename(place) == ".git" else None


def head_ref(admin: str) -> str | None:
    """The ref that HEAD names; None if it is detached."""
    text = _read(os.path.join(admin, "HEAD")).decode("utf-8", "replace")
    found = _REF.fullmatch(text)
    return found[1] if found else None


def lock_of(admin: str) -> str | None:
    """Why git was told to leave a worktree alone; None: it was not."""
    path = os.path.join(admin, "locked")
    if not os.path.lexists(path):
        return None
    return _read(path).decode("utf-8", "replace").strip()


def mentioned(admin: str) -> set[str]:
    """Every name of an object that the state of a worktree mentions.

    These are those of merges, rebases, bisections and what they set aside, and all that
    its HEAD has ever been.
    """
    found: set[str] = set()
    for path in state_files(admin):
        if path.split("/")[0] not in _NO_COMMITS:
            text = _read(os.path.join(admin, path))
            found |= {oid.decode() for oid in _OID.findall(text)}
    return found


def state_files(admin: str) -> Iterator[str]:
    """The files of an entry, those of submodules left out, by their path in it."""
    for folder, folders, files in os.walk(admin):
        if folder == admin and MODULES in folders:
            folders.remove(MODULES)
        folders.sort()
        for name in sorted(files):
            yield os.path.relpath(os.path.join(folder, name), admin)


def _read(path: str) -> bytes:
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            return file.read(MAX_STATE)
    return b""
