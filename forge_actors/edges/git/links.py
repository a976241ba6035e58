"""How repositories and their linked work trees name each other, when things moved."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from forge_actors.edges.git.ids import identity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.relocation import Relocation
    from forge_actors.domain.repositories import Identity

#: Folders that are looked at to find a repository that moved.
MAX_SEEN = 1000
#: Linked work trees of one repository that are told where it is now.
MAX_TREES = 4096
#: Longest link, in bytes.
_LONGEST = 8192


def as_linked(root: str, own: str) -> str:
    """The top folder of a linked work tree as its repository spells it, if that is the
    same folder: one that is seen through a bind mount is no other work tree."""
    with suppress(OSError):
        known = os.path.dirname(os.path.realpath(_read(os.path.join(own, "gitdir"))))
        if known != root and os.path.samefile(known, root):
            return known
    return root


def seek(common_dir: str, repo_id: str) -> list[tuple[str, Identity]]:
    """Where the id of a repository is that was at `common_dir`, beside that place.

    Whether it was renamed itself or a folder around it: it is looked for in the folder
    that is still there, below the names it had.
    """
    folder, rest = common_dir, ""
    if os.path.basename(common_dir) == ".git":
        folder, rest = os.path.dirname(common_dir), ".git"
    above = os.path.dirname(folder)
    while not os.path.isdir(above) and above != "/":
        rest = (
            os.path.join(os.path.basename(folder), rest)
            if rest
            else (os.path.basename(folder))
        )
        folder, above = above, os.path.dirname(above)
    found = []
    for name in _folders(above):
        place = os.path.join(above, name, rest).rstrip("/")
        there = identity(place) if place != common_dir else None
        if there is not None and repo_id in there.ids:
            found.append((place, there))
    return found


def relink(common_dir: str, old: str, moved: Relocation) -> None:
    """Have the linked work trees of a repository that was at `old` name its new place.

    Those that moved with it are named by it too. A link that is not as git made it is
    left alone; what cannot be written is as it was, and git says so when it is used.
    """
    trees = os.path.join(common_dir, "worktrees")
    for name in _folders(trees, MAX_TREES):
        with suppress(OSError, ValueError):
            _relink(os.path.join(trees, name), f"{old}/worktrees/{name}", moved)


def _relink(own: str, was: str, moved: Relocation) -> None:
    back = os.path.join(own, "gitdir")
    link = _read(back)
    there = moved.path(link)
    if there != link and not os.path.lexists(link) and _read(there) == f"gitdir: {was}":
        _replace(back, there)
        link = there
    if _read(link) == f"gitdir: {was}":
        _replace(link, f"gitdir: {own}")


def _folders(folder: str, limit: int = MAX_SEEN) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, limit):
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    yield entry.name


def _read(path: str) -> str:
    """The one line of a regular file.

    Raises:
        OSError: there is none.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        return os.fsdecode(os.read(fd, _LONGEST)).removesuffix("\n")
    finally:
        os.close(fd)


def _replace(path: str, line: str) -> None:
    draft = f"{path}.{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(draft, flags, 0o644)
    try:
        with open(fd, "wb") as file:
            file.write(os.fsencode(f"{line}\n"))
            file.flush()
            os.fsync(fd)
        os.rename(draft, path)
    except OSError:
        with suppress(OSError):
            os.unlink(draft)
        raise
