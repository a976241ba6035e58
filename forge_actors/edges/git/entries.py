"""What ties a worktree to its repository: its file `.git` and its entry there."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from typing import NamedTuple

from forge_actors.domain.errors import WorktreeFailed

#: Bytes of a file that holds one path.
_MAX_PATH = 8192
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Entry(NamedTuple):
    """A worktree that is tied to a repository."""

    #: As it is written in its file `.git`.
    git_dir: str
    device: int
    inode: int


def entry_of(folder: str, common_dir: str) -> Entry:
    """The entry of the worktree in this folder.

    Raises:
        WorktreeFailed: it is none, or not one of this repository.
    """
    try:
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode):
            raise WorktreeFailed(f"{folder} is no folder")
        line = _line(os.path.join(folder, ".git"))
        git_dir = line.removeprefix("gitdir: ")
        if git_dir == line or not os.path.isabs(git_dir):
            raise WorktreeFailed(f"{folder}/.git names no repository")
        back = _line(os.path.join(git_dir, "gitdir"))
        common = _line(os.path.join(git_dir, "commondir"))
        if not os.path.samefile(os.path.join(git_dir, common), common_dir):
            raise WorktreeFailed(f"{folder} is of another repository: {git_dir}")
        if not os.path.samefile(os.path.join(git_dir, os.path.dirname(back)), folder):
            raise WorktreeFailed(f"{git_dir} is the entry of another worktree: {back}")
    except FileNotFoundError as error:
        raise WorktreeFailed(f"{folder}: there is no {error.filename}") from None
    except OSError as error:
        raise WorktreeFailed(f"{folder}: {error.filename}: {error.strerror}") from None
    return Entry(git_dir, status.st_dev, status.st_ino)


def entry_named(folder: str, common_dir: str) -> str | None:
    """The entry that says that it is of this folder, whatever is in that by now."""
    own = os.path.join(
        os.path.realpath(os.path.dirname(folder)), os.path.basename(folder), ".git"
    )
    around = os.path.join(common_dir, "worktrees")
    try:
        with os.scandir(around) as entries:
            paths = [entry.path for entry in entries]
    except FileNotFoundError:
        return None
    for path in paths:
        try:
            if _line(os.path.join(path, "gitdir")) == own:
                return path
        except (OSError, WorktreeFailed):
            continue
    return None


def forget_worktree(folder: str) -> None:
    """Remove the entry that the repository has of this worktree, if there is one.

    Its folder and its branch stay. What is no entry of just this folder stays too.
    """
    with suppress(OSError, WorktreeFailed):
        git_dir = _line(os.path.join(folder, ".git")).removeprefix("gitdir: ")
        back = os.path.dirname(_line(os.path.join(git_dir, "gitdir")))
        around = os.path.basename(os.path.dirname(os.path.realpath(git_dir)))
        if around == "worktrees" and os.path.samefile(back, folder):
            shutil.rmtree(git_dir)


def _line(path: str) -> str:
    """The one line of a small file."""
    fd = os.open(path, _FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise WorktreeFailed(f"{path} is no file")
        return os.fsdecode(os.read(fd, _MAX_PATH)).rstrip("\n")
    finally:
        os.close(fd)
