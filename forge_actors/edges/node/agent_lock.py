"""The lock that the agent of a home holds as long as it lives, however it ends."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from pathlib import Path

NAME = "agent.lock"


def living_instance(home: Path) -> str | None:
    """The name of the agent that lives in this home; None if there is none."""
    try:
        with open(home / NAME, encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return None
    except BlockingIOError:
        return (home / NAME).read_text(encoding="ascii").strip()
    return None


async def wait_for_end(home: Path) -> None:
    """Until no agent lives in this home."""
    # There is nothing to wait for but the lock itself. When the wait is cancelled
    # the thread stays behind until it has the lock, and gives it back at once.
    await trio.to_thread.run_sync(_wait, home / NAME, abandon_on_cancel=True)


def _wait(path: Path) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)
