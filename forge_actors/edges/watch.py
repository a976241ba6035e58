"""Tells in which checkouts files change: by inotify, one instance for all of them.

Without a thread and without polling, so that it costs nothing while nothing changes.
Folders are watched one by one, since Linux knows no other way; what is usually ignored,
and often large, is left out, and so is what belongs to another repository. Of git's own
folder only what changes a status is looked at: not its locks, not its objects.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import struct
import sys
from typing import TYPE_CHECKING, Literal

import trio
from msgspec import Struct

from forge_actors.domain.looking import Unwatchable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from forge_actors.domain.repositories import Repository

#: Folders of one checkout that are watched; of a larger one none is.
MAX_FOLDERS = 2048
#: Bytes of events that are read at once, others having their turn in between, and
#: before those who wait are told.
PIECE, MOST = 16 * 1024, 1024 * 1024
#: Seconds between two looks where files cannot be watched.
WITHOUT = 0.1
#: Folders that are added before others have their turn.
TURN = 64

# From <sys/inotify.h>.
_ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x004, 0x008, 0x040, 0x080
_CREATE, _DELETE, _Q_OVERFLOW, _IGNORED = 0x100, 0x200, 0x4000, 0x8000
_MOVE_SELF = 0x800
_ONLYDIR, _DONT_FOLLOW, _EXCL_UNLINK = 0x01000000, 0x02000000, 0x04000000
_ISDIR = 0x40000000
_MASK = _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_MASK |= _ONLYDIR | _DONT_FOLLOW | _EXCL_UNLINK
_EVENT = struct.Struct("iIII")

#: Folders that are hardly ever tracked.
SKIPPED = frozenset(
    {
        *(".git", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox"),
        *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".cache"),
        *("target", ".gradle", ".next", ".terraform"),
    }
)
#: What tells of a change in a git directory, whose other files are of no interest.
_TELLING = frozenset(
    {
        *("HEAD", "index", "packed-refs", "FETCH_HEAD", "MERGE_HEAD", "rebase-merge"),
        *("rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "config"),
    }
)


Kind = Literal["git", "refs", "tree"]


class _Folder(Struct, frozen=True):
    """One folder that is watched: a git directory, one of its refs, or of the tree."""

    repo: str
    path: str
    kind: Kind


class FolderWatch:
    """The port `FileWatch`. `close` ends it."""

    def __init__(self) -> None:
        #: Made when it is first needed.
        self._fd = -1
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._folders: dict[int, _Folder] = {}
        self._of: dict[str, set[int]] = {}
        self._some = trio.Event()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd, self._some = -1, trio.Event()
        self._folders.clear()
        self._of.clear()

    async def watch(self, repository: Repository) -> Unwatchable | None:
        """See the port."""
        repo = repository.id
        self.forget(repo)
        try:
            self._open()
            paths = await trio.to_thread.run_sync(
                _paths, repository.path, repository.common_dir, abandon_on_cancel=True
            )
            if len(paths) > MAX_FOLDERS:
                return Unwatchable(f"it has more than {MAX_FOLDERS} folders")
            self._of[repo] = set()
            for number, (path, kind) in enumerate(paths):
                if number % TURN == TURN - 1:
                    await trio.lowlevel.checkpoint()
                if repo not in self._of:
                    return None  # it was forgotten meanwhile
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    self._add(_Folder(repo, path, kind))
        except OSError as error:
            self.forget(repo)
            return _why(error)
        except BaseException:
            self.forget(repo)
            raise
        if not self._of[repo]:
            self.forget(repo)
            return Unwatchable("its folder is gone")
        return None

    def forget(self, repo: str) -> None:
        """See the port."""
        for number in self._of.pop(repo, ()):
            if self._folders.pop(number, None) is not None:
                self._libc.inotify_rm_watch(self._fd, number)

    async def changed(self) -> set[str]:
        """See the port."""
        found: set[str] = set()
        while not found:
            while self._fd < 0:
                await self._some.wait()
            await trio.lowlevel.wait_readable(self._fd)
            size = 0
            while size < MOST and (piece := self._read()):
                self._take(piece, found)
                size += len(piece)
                await trio.lowlevel.checkpoint()
        return found

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, PIECE)
        except BlockingIOError:
            return b""

    def _open(self) -> None:
        if self._fd < 0:
            if not sys.platform.startswith("linux"):
                raise OSError(errno.ENOSYS, "files can be watched on Linux only")
            flags = os.O_NONBLOCK | os.O_CLOEXEC
            self._fd = _checked(self._libc.inotify_init1(flags))
            self._some.set()

    def _add(self, folder: _Folder) -> None:
        path = os.fsencode(folder.path)
        number = _checked(self._libc.inotify_add_watch(self._fd, path, _MASK))
        self._folders[number] = folder
        self._of[folder.repo].add(number)

    def _take(self, piece: bytes, found: set[str]) -> None:
        """Add the repositories that these events are about."""
        place = 0
        while place < len(piece):
            number, mask, _, length = _EVENT.unpack_from(piece, place)
            place += _EVENT.size
            name = piece[place : place + length].rstrip(b"\0")
            place += length
            if mask & _Q_OVERFLOW:  # nobody knows what was in the others
                found.update(self._of)
            elif (folder := self._folders.get(number)) is None:
                continue
            elif mask & _IGNORED:  # the folder is gone
                del self._folders[number]
                self._of[folder.repo].discard(number)
            elif _tells(folder, os.fsdecode(name)):
                found.add(folder.repo)
                if mask & _ISDIR and mask & (_CREATE | _MOVED_TO):
                    self._follow(folder, os.fsdecode(name))

    def _follow(self, parent: _Folder, name: str) -> None:
        """Watch a folder that is new, with what is in it already."""
        of = self._of[parent.repo]
        for path in _folders(os.path.join(parent.path, name), MAX_FOLDERS - len(of)):
            # It may be gone again, or be one too many: the safety round is left.
            with contextlib.suppress(OSError):
                self._add(_Folder(parent.repo, path, parent.kind))


async def watch_folders(
    paths: Sequence[str],
    changed: Callable[[], object],
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    """Call `changed` whenever a file of these folders may have changed, until
    cancelled.

    Where files cannot be watched, and once a folder is gone, that is every `WITHOUT`
    seconds.
    """
    fd = _watched(paths)
    try:
        task_status.started()
        while fd is not None and not await _is_gone(fd):
            changed()
    finally:
        if fd is not None:
            os.close(fd)
    if fd is not None:
        changed()
    while True:
        await trio.sleep(WITHOUT)
        changed()


def _watched(paths: Sequence[str]) -> int | None:
    """What tells of some folders; None if nothing can."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    fd = -1
    try:
        fd = _checked(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        for path in paths:
            name = os.fsencode(path)
            _checked(libc.inotify_add_watch(fd, name, _MASK | _MOVE_SELF))
    except OSError:
        if fd >= 0:
            os.close(fd)
        return None
    return fd


async def _is_gone(fd: int) -> bool:
    """Wait for something to happen; whether it was the end of a folder."""
    await trio.lowlevel.wait_readable(fd)
    try:
        piece = os.read(fd, PIECE)
    except BlockingIOError:
        return False
    place, gone = 0, False
    while place < len(piece):
        _, mask, _, length = _EVENT.unpack_from(piece, place)
        place += _EVENT.size + length
        gone = gone or bool(mask & (_IGNORED | _MOVE_SELF))
    return gone


def _tells(folder: _Folder, name: str) -> bool:
    """Whether this name in a folder has to do with a status."""
    if folder.kind == "git":
        return name in _TELLING
    if folder.kind == "refs":
        return not name.endswith(".lock")
    return name not in SKIPPED


def _paths(root: str, common: str) -> list[tuple[str, Kind]]:
    """The folders to be watched for a checkout, git's own first.

    At most one more than `MAX_FOLDERS`.
    """
    own = os.path.join(root, ".git")
    if os.path.isfile(own):  # a linked work tree
        with open(own, "rb") as file:
            name = os.fsdecode(file.read(4096).removeprefix(b"gitdir:").strip())
        own = os.path.join(root, name)
    dirs = dict.fromkeys(map(os.path.realpath, (own, common)))
    refs = os.path.join(common, "refs")
    found: list[tuple[str, Kind]] = [(path, "git") for path in dirs]
    found += ((path, "refs") for path in _folders(refs, MAX_FOLDERS))
    left = MAX_FOLDERS + 1 - len(found)
    found += ((path, "tree") for path in _folders(root, left))
    return found


def _folders(root: str, most: int) -> Iterator[str]:
    """A folder and those in it, the upper ones first."""
    waiting = [root]
    for path in waiting:
        if most <= 0:
            return
        most -= 1
        yield path
        with contextlib.suppress(OSError), os.scandir(path) as entries:
            waiting += (entry.path for entry in entries if _counts(entry))


def _counts(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder whose files may be in the status."""
    if entry.name in SKIPPED or not entry.is_dir(follow_symlinks=False):
        return False
    # One that has its own .git belongs to another repository.
    return not os.path.lexists(os.path.join(entry.path, ".git")) and not (
        entry.path.endswith("/.ai/harness")
    )


def _why(error: OSError) -> Unwatchable:
    if error.errno in (errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM):
        what = "watches" if error.errno == errno.ENOSPC else "watchers, or no files,"
        setting = "watches" if error.errno == errno.ENOSPC else "instances"
        return Unwatchable(
            f"the system has no more {what} for us (fs.inotify.max_user_{setting})",
            everywhere=True,
        )
    reason = error.strerror or str(error)
    return Unwatchable(reason, everywhere=error.errno == errno.ENOSYS)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
