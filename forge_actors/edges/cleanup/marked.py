"""What a run of the clean-up has started, wherever it went: it carries a mark."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress

#: The variable that has another value in each run.
MARK = "FORGE_CLEAN_UP"
#: Seconds between the wish that something ends and the end of it.
GRACE = 2.0


def end_marked(mark: str, spared: int | None = None) -> None:
    """End what has the mark of a run, except one process.

    The group of the run is no answer for what left it, as a daemon does.
    """
    wanted = f"{MARK}={mark}".encode()
    try:
        with os.scandir("/proc") as entries:
            pids = [int(entry.name) for entry in entries if entry.name.isdecimal()]
    except OSError:
        return
    for pid in pids:
        if pid == spared or not _has(pid, wanted):
            continue
        with suppress(OSError):
            fd = os.pidfd_open(pid)
            try:
                # The number may be another process by now, but not from here on.
                if _has(pid, wanted):
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
                    # What was only just killed is there for a moment still.
                    select.select([fd], [], [], GRACE)
            finally:
                os.close(fd)


def _has(pid: int, wanted: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            return wanted in environ.read().split(b"\0")
    except OSError:
        return False
