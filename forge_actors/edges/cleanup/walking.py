"""Removing files and whole trees, so that nothing outside of them is ever touched.

What is to go is first moved aside, into a folder of the home that only the clean-up
uses, and looked at again there: if it is not what was seen before, it goes back. From
then on nobody who uses its old path, or puts something else in place of it or of a
folder around it, can get in between. In the tree each folder is opened without
following a link, compared with what its name stood for, and never left by a path; what
is mounted in it is left alone, and a link is removed, not followed.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from forge_actors.edges.cleanup.folders import Entry, Folder, Unsafe, entry_from, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forge_actors.edges.cleanup.folders import Identity

#: The folder of a home in which things lie that are about to be removed.
ASIDE = "removing"
#: Folders that are open at once. What is deeper is moved up before it is walked.
MAX_DEPTH = 40
#: Entries that one call removes; the next one goes on with what is left.
MAX_ENTRIES = 1_000_000
#: Between two looks at whether there is time left.
_LOOK_EVERY = 64
#: How often a folder is listed again, in which something was added meanwhile.
_LISTINGS = 3
#: Things that stay of which each one is named, and characters of such a name.
MAX_NAMED = 20
MAX_SHOWN = 300
#: Why something stays that is not what was seen before.
EXCHANGED = "it was exchanged for something else"

#: What is moved aside is named by its inode, so that nothing else is taken for it.
_ASIDE_NAME = re.compile(r"([0-9a-f]{1,16})-[0-9a-f]{16}")

_DENIED = (errno.EACCES, errno.EPERM)
_NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)


class Left(NamedTuple):
    """Something that could not be removed, and why."""

    path: str
    reason: str


class Removed(NamedTuple):
    """What a removal came to. Bytes are those that the disk has back."""

    bytes: int
    entries: int
    #: The first ones of what could not be removed.
    left: tuple[Left, ...]
    #: Whether all of it is gone from its place; it may wait aside to be removed.
    gone: bool
    #: Whether the time or the number of entries was used up before the end.
    unfinished: bool

    @property
    def reason(self) -> str:
        """Why something stays, in a few words; empty if nothing does."""
        if self.left:
            return self.left[0].reason
        return "there was no time left" if self.unfinished else ""


class Remover:
    """Removes what is in the folders of one home."""

    def __init__(
        self,
        aside: Folder,
        may_go_on: Callable[[], bool] = lambda: True,
        *,
        max_entries: int = MAX_ENTRIES,
    ) -> None:
        self._aside = aside
        self._may_go_on = may_go_on
        self._max_entries = max_entries

    def remove(self, folder: Folder, entry: Entry) -> Removed:
        """Remove a file, a link or a whole tree, if it still is what `entry` says."""
        walk = _Walk(self._aside, self._may_go_on, self._max_entries)
        where = os.path.join(folder.path, entry.name)
        found = folder.entry(entry.name)
        if found is None:
            return walk.result(gone=True)
        if found.identity != entry.identity:
            walk.leave(where, EXCHANGED)
            return walk.result(gone=False)
        try:
            moved = _move(folder, found, self._aside)
        except OSError as error:
            if error.errno != errno.EXDEV:
                walk.leave(where, _told(error.errno))
                return walk.result(gone=False)
            # Some file systems move no folder that lies in one of their lower layers.
            walk.remove(folder, found, where)
            return walk.result(gone=folder.entry(entry.name) is None)
        if moved is None:
            walk.leave(where, EXCHANGED)
            return walk.result(gone=False)
        walk.remove(self._aside, moved, where)
        return walk.result(gone=True)

    def finish(self) -> Iterator[tuple[Entry, Removed]]:
        """Remove what earlier clean-ups have moved aside, one thing after the other.

        What came to lie there in place of something else stays.
        """
        for entry in self._aside.entries():
            if not self._may_go_on():
                return
            walk = _Walk(self._aside, self._may_go_on, self._max_entries)
            where = os.path.join(self._aside.path, entry.name)
            meant = _ASIDE_NAME.fullmatch(entry.name)
            if meant is None or int(meant[1], 16) != entry.identity.inode:
                walk.leave(where, "the clean-up did not mean to remove it")
                yield entry, walk.result(gone=False)
            else:
                walk.remove(self._aside, entry, where)
                gone = self._aside.entry(entry.name) is None
                yield entry, walk.result(gone=gone)


def remove_tree(
    folder: Folder,
    name: str,
    aside: Folder,
    *,
    identity: Identity | None = None,
    may_go_on: Callable[[], bool] = lambda: True,
) -> Removed:
    """Remove `name` in `folder`: if it is given, only what has this identity."""
    entry = folder.entry(name)
    if entry is None:
        return Removed(0, 0, (), gone=True, unfinished=False)
    if identity is not None:
        entry = entry._replace(identity=identity)
    return Remover(aside, may_go_on).remove(folder, entry)


class _Level(NamedTuple):
    """A folder of the tree that is being emptied."""

    parent: Folder
    entry: Entry
    #: As people know it, wherever it lies by now.
    path: str
    folder: Folder
    listing: Iterator[Entry]


class _Walk:
    """One removal, with what it came to so far."""

    def __init__(
        self, top: Folder, may_go_on: Callable[[], bool], max_entries: int
    ) -> None:
        #: Where folders go that lie too deep.
        self._top = top
        self._may_go_on = may_go_on
        self._max_entries = max_entries
        self._bytes = 0
        self._entries = 0
        self._left: list[Left] = []
        self._kept = 0
        self._unfinished = False
        #: What was moved up, to be walked next.
        self._lifted: list[tuple[Entry, str]] = []

    def result(self, *, gone: bool) -> Removed:
        left = tuple(self._left)
        return Removed(self._bytes, self._entries, left, gone, self._unfinished)

    def leave(self, path: str, reason: str) -> None:
        self._kept += 1
        if len(self._left) < MAX_NAMED:
            self._left.append(Left(shown(path)[-MAX_SHOWN:], reason))

    def remove(self, parent: Folder, entry: Entry, path: str) -> None:
        self._remove(parent, entry, path)
        while self._lifted and not self._stops():
            deep, where = self._lifted.pop()
            self._remove(self._top, deep, f"{path}/.../{where}")

    def _remove(self, parent: Folder, entry: Entry, path: str) -> None:
        if not entry.is_folder:
            self._unlink(parent, entry, path)
            return
        levels: list[_Level] = []
        self._enter(levels, parent, entry, path)
        try:
            while levels:
                level = levels[-1]
                found = self._next(level)
                if found is None:
                    levels.pop()
                    level.folder.close()
                    self._rmdir(level)
                    continue
                path = os.path.join(level.path, found.name)
                if not found.is_folder:
                    self._unlink(level.folder, found, path)
                elif len(levels) < MAX_DEPTH:
                    self._enter(levels, level.folder, found, path)
                else:
                    self._lift(level.folder, found, path)
        finally:
            for level in levels:
                level.folder.close()

    def _stops(self) -> bool:
        if self._entries % _LOOK_EVERY == 0 and not self._may_go_on():
            self._unfinished = True
        if self._entries >= self._max_entries:
            self._unfinished = True
        return self._unfinished

    def _next(self, level: _Level) -> Entry | None:
        """What is to be removed next in a folder; None if there is nothing left."""
        if self._stops():
            return None
        try:
            return next(level.listing, None)
        except OSError as error:
            self.leave(level.path, _told(error.errno))
            return None

    def _listed(self, folder: Folder) -> Iterator[Entry]:
        """What is in a folder, again while each listing shows only what can go."""
        for _ in range(_LISTINGS):
            gone, kept = self._entries + len(self._lifted), self._kept
            yield from folder.entries()
            if self._entries + len(self._lifted) == gone or self._kept > kept:
                return

    def _enter(
        self, levels: list[_Level], parent: Folder, entry: Entry, path: str
    ) -> None:
        """Open a folder that is to be emptied, if it still is what its name says."""
        try:
            try:
                folder = parent.folder(entry.name, entry.identity)
            except PermissionError:
                if not _open_up(parent, entry):
                    raise
                folder = parent.folder(entry.name, entry.identity)
        except Unsafe as problem:
            self.leave(path, problem.reason)
        except OSError as error:
            self.leave(path, _told(error.errno))
        else:
            if folder is not None:
                _make_writable(folder)
                listing = self._listed(folder)
                levels.append(_Level(parent, entry, path, folder, listing))

    def _unlink(self, parent: Folder, entry: Entry, path: str) -> None:
        try:
            now = parent.entry(entry.name)
            if now is None:
                return
            if now.identity != entry.identity:
                self.leave(path, EXCHANGED)
                return
            os.unlink(entry.name, dir_fd=parent.fd)
        except FileNotFoundError:
            return
        except OSError as error:
            self.leave(path, _told(error.errno))
            return
        self._entries += 1
        # With another name left the disk gets nothing back.
        self._bytes += now.bytes if now.links == 1 else 0

    def _rmdir(self, level: _Level) -> None:
        if self._unfinished:
            return
        parent, entry = level.parent, level.entry
        try:
            now = parent.entry(entry.name)
            if now is None or now.identity != entry.identity:
                self.leave(level.path, EXCHANGED)
                return
            os.rmdir(entry.name, dir_fd=parent.fd)
        except OSError as error:
            # What is still in it has told of itself.
            if error.errno not in _NOT_EMPTY or not self._left:
                self.leave(level.path, _told(error.errno))
            return
        self._entries += 1
        self._bytes += now.bytes

    def _lift(self, folder: Folder, entry: Entry, path: str) -> None:
        """Move a folder that lies deep to the top, so that few have to be open."""
        try:
            moved = _move(folder, entry, self._top)
        except OSError as error:
            self.leave(path, _told(error.errno))
            return
        if moved is None:
            self.leave(path, EXCHANGED)
        else:
            self._lifted.append((moved, entry.name))


def _move(folder: Folder, entry: Entry, to: Folder) -> Entry | None:
    """Move a thing to a name that nobody knows; None if it was another one by then.

    Raises:
        OSError: it is where it was.
    """
    name = f"{entry.identity.inode:x}-{secrets.token_hex(8)}"
    try:
        os.rename(entry.name, name, src_dir_fd=folder.fd, dst_dir_fd=to.fd)
    except PermissionError:
        # A folder that is moved has to be writable itself, since its `..` changes.
        opened = _open_up(folder, entry)
        if not (_make_writable(folder) or opened):
            raise
        os.rename(entry.name, name, src_dir_fd=folder.fd, dst_dir_fd=to.fd)
    except FileNotFoundError:
        return None
    moved = to.entry(name)
    if moved is None or moved.identity == entry.identity:
        return moved
    _put_back(to, moved, folder, entry.name)
    return None


def _put_back(aside: Folder, moved: Entry, folder: Folder, name: str) -> None:
    """Give a thing its name back; if something else has that by now it stays aside."""
    where = {"src_dir_fd": aside.fd, "dst_dir_fd": folder.fd}
    with suppress(OSError):
        if not moved.is_folder:
            # A link is refused where the name is taken, a move would replace it.
            os.link(moved.name, name, **where, follow_symlinks=False)
            os.unlink(moved.name, dir_fd=aside.fd)
        elif folder.entry(name) is None:
            os.rename(moved.name, name, **where)


def _open_up(parent: Folder, entry: Entry) -> bool:
    """Give ourselves the right to a folder of ours; whether that was done."""
    if not entry.is_folder or entry.owner != os.geteuid():
        return False
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(entry.name, flags | os.O_DIRECTORY, dir_fd=parent.fd)
    except OSError:
        return False
    try:
        status = os.fstat(fd)
        if entry_from(entry.name, status).identity != entry.identity:
            return False
        # What was opened only to be passed can be changed only by its name in /proc.
        os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(status.st_mode) | 0o700)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _make_writable(folder: Folder) -> bool:
    """Give ourselves the right to change an open folder; whether that was done."""
    if folder.owner != os.geteuid() or folder.mode & 0o700 == 0o700:
        return False
    try:
        os.fchmod(folder.fd, folder.mode | 0o700)
    except OSError:
        return False
    return True


def _told(number: int | None) -> str:
    """Why something stays, in words."""
    if number == errno.EBUSY:
        return "something is mounted there"
    if number in _DENIED:
        return "its rights do not allow it, and it is not ours to change them"
    if number in _NOT_EMPTY:
        return "something was added to it meanwhile"
    return os.strerror(number or errno.EIO)
