"""The file into which an agent program writes what it tells of itself, one an attempt.

It is beside the log of the attempt, and goes when the store has what it said.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from forge_actors.edges.agents.output import AgentOutput

#: Bytes of a whole file; what a larger one says is unknown.
MAX_TELEMETRY = 32 * 1024 * 1024


def path(log: str) -> str:
    """Where it is, for an attempt with this log."""
    return f"{log}.telemetry"


def prepare(log: str) -> None:
    """Make it, empty and for this user alone; without it nothing is told."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(OSError):
        os.close(os.open(path(log), flags, 0o600))


async def read(log: str, output: AgentOutput) -> None:
    """Take in what it says, if there is one."""
    if os.path.lexists(path(log)):
        await trio.to_thread.run_sync(_take, path(log), output)


def _take(file: str, output: AgentOutput) -> None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(file, flags)
    except OSError:
        return
    with open(fd, "rb") as stream:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return
        data = stream.read(MAX_TELEMETRY + 1)
    if len(data) <= MAX_TELEMETRY:
        output.telemetry(data)


def remove(log: str) -> None:
    with suppress(OSError):
        os.unlink(path(log))
