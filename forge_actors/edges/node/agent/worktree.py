"""The worktree a job has to be in: looked at when everything is ready to start it.

A folder that was removed, or replaced by another one, must not start a job: git would
look for a repository further up, and find that of somebody else.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from typing import TYPE_CHECKING, Any

from forge_actors.edges.node.agent.child import SpawnFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Folders that one may be deep in a worktree.
_MAX_DEPTH = 256
#: Bytes of the file that ties a worktree to git, and of what tells of a set-up.
_MAX_BYTES = 64 * 1024
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Worktree:
    """See `domain.worktrees.WorktreePlace`; here as the agent needs it."""

    __slots__ = ("_common_dir", "_git_dir", "_identity", "_root", "_setup", "_state")

    # Any: decoded JSON.
    def __init__(self, message: dict[str, Any]) -> None:
        self._root = _bytes(message["root"])
        self._git_dir = _bytes(message["git_dir"])
        self._common_dir = _bytes(message["common_dir"])
        self._identity = (int(message["device"]), int(message["inode"]))
        commands: list[str] = message["setup"]
        self._state = _bytes(message["setup_state"])
        self._setup: list[bytes] = []
        if commands:
            program = os.path.join(os.path.dirname(__file__), "setup.py")
            self._setup = [
                os.fsencode(sys.executable),
                *(b"-I", b"-S", os.fsencode(program)),
                *(self._state, self._root, str(message["setup_seconds"]).encode()),
                *(str(len(commands)).encode(), *map(_bytes, commands)),
            ]

    def command(self, argv: list[bytes]) -> list[bytes]:
        """What to run for this one: itself, or its set-up that becomes it."""
        return [*self._setup, *argv] if self._setup else argv

    def check(self) -> None:
        """The folder that this process is in now has to be in the worktree.

        Raises:
            SpawnFailed: it is not, or the worktree is not of its repository.
        """
        root = os.fsdecode(self._root)
        try:
            self._check()
        except OSError as error:
            where = error.filename if error.filename is not None else self._root
            raise SpawnFailed(
                f"its worktree {root} is not there as it was made:"
                f" {os.fsdecode(where)}: {error.strerror}"
            ) from None
        except ValueError as error:
            raise SpawnFailed(
                f"its worktree {root} is not there as it was made: {error}"
            ) from None

    def _check(self) -> None:
        status = os.lstat(self._root)
        if (status.st_dev, status.st_ino) != self._identity:
            raise ValueError("another folder is in its place")
        if self._identity not in _folders_around():
            raise ValueError("its working folder leads out of it")
        line = _read(os.path.join(self._root, b".git")).rstrip(b"\n")
        if line != b"gitdir: " + self._git_dir:
            raise ValueError("its file .git leads to another repository")
        common = _read(os.path.join(self._git_dir, b"commondir")).rstrip(b"\n")
        common = os.path.join(self._git_dir, common)
        if not os.path.samefile(common, self._common_dir):
            raise ValueError("it is of another repository")

    def add_to(self, receipt: dict[str, Any]) -> None:
        """Tell in a receipt if it was its set-up that ended, and not the job."""
        if not self._setup:
            return
        told: dict[str, Any] = {}
        try:
            read = json.loads(_read(self._state))
            told = read if isinstance(read, dict) else {}
        except (OSError, ValueError, RecursionError):
            pass
        if told.get("done") is not True:
            receipt["setup_error"] = _problem(told)
        elif receipt["ending"] == "exit" and isinstance(told.get("start"), str):
            receipt.pop("exit_code", None)
            receipt |= {"ending": "spawn", "error": told["start"]}


def _problem(told: dict[str, Any]) -> str:
    command, why = told.get("command"), told.get("why")
    if not isinstance(command, str):
        return "it ended before its set-up had begun"
    if not isinstance(why, str):
        return f"it ended while its set-up command ran: {command}"
    return f"its set-up command {why}: {command}"


def _folders_around() -> Iterator[tuple[int, int]]:
    """The folder this process is in, and those around it, as the system knows them."""
    folder = os.open(b".", _FOLDER)
    try:
        before = None
        for _ in range(_MAX_DEPTH):
            status = os.fstat(folder)
            here = (status.st_dev, status.st_ino)
            if here == before:
                return
            yield here
            before = here
            above = os.open(b"..", _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = above
    finally:
        os.close(folder)


def _read(path: bytes) -> bytes:
    fd = os.open(path, _FILE)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError(f"{os.fsdecode(path)} is no file")
        return os.read(fd, _MAX_BYTES)
    finally:
        os.close(fd)


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")
