"""Which processes have to do with a worktree: nobody's lock is taken from them."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.errors import WorktreeFailed
from forge_actors.edges.git.program import MARK

if TYPE_CHECKING:
    from collections.abc import Callable


def busy_with(job: str, folder: str) -> tuple[int, ...] | None:
    """The processes that are in the worktree of a job, or have its mark, or that of
    what made its worktree. None where that cannot be seen.

    Of other users' processes neither can be seen, and they may not write there.
    """
    marks = (f"{MARK}={folder}", f"FORGE_JOB_ID={job}")
    inside = os.path.realpath(folder)

    def concerned(pid: str) -> bool:
        cwd = os.readlink(f"/proc/{pid}/cwd")
        return cwd == inside or cwd.startswith(f"{inside}/") or _has(pid, marks)

    return _processes(concerned)


async def until_left_alone(folder: str, seconds: float) -> None:
    """Wait for git programs that an earlier runtime started for this worktree.

    Raises:
        WorktreeFailed: one goes on.
    """
    for pid in _processes(lambda pid: _has(pid, (f"{MARK}={folder}",))) or ():
        with suppress(ProcessLookupError):
            process = os.pidfd_open(pid)
            try:
                with trio.move_on_after(seconds):
                    await trio.lowlevel.wait_readable(process)
                    continue
                raise WorktreeFailed(
                    f"{named((pid,))}, which an earlier runtime started to make this"
                    " worktree, does not end"
                )
            finally:
                os.close(process)


def named(pids: tuple[int, ...]) -> str:
    """These processes as a message tells them."""
    names = []
    for pid in pids[:3]:
        name = "?"
        with suppress(OSError), open(f"/proc/{pid}/comm", "rb") as file:
            name = file.read(64).decode("utf-8", "replace").strip()
        names.append(f"{name} (pid {pid})")
    return ", ".join(names) + (", …" if len(pids) > 3 else "")


def _processes(concerned: Callable[[str], bool]) -> tuple[int, ...] | None:
    try:
        with os.scandir("/proc") as entries:
            names = [entry.name for entry in entries]
    except OSError:
        return None
    found = []
    for entry in names:
        if entry.isdecimal() and int(entry) != os.getpid():
            with suppress(OSError):  # it has ended, or is another user's
                if concerned(entry):
                    found.append(int(entry))
    return tuple(found)


def _has(pid: str, marks: tuple[str, ...]) -> bool:
    with open(f"/proc/{pid}/environ", "rb") as file:
        return not {mark.encode() for mark in marks}.isdisjoint(
            file.read().split(b"\0")
        )
