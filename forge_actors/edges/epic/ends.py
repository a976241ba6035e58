"""When a process ends, of whomever it is a child, and when it began."""

from __future__ import annotations

import os
from contextlib import suppress

import trio


async def ended(pid: int) -> None:
    """Wait for the end of a process, where the system tells of it."""
    if not hasattr(os, "pidfd_open"):
        return
    with suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            await trio.lowlevel.wait_readable(handle)
        finally:
            os.close(handle)


def start_time(pid: int) -> int | None:
    """Clock ticks after the boot at which a process began."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read(4096).rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None
