"""Waits for a time of the wall clock: the system's own timer, which knows of sleep.

On Linux a timerfd on the wall clock fires at its time, also just after the machine
slept over it, and says when the clock was set. Elsewhere nothing tells of either, so it
looks once a minute while something is waited for.
"""

from __future__ import annotations

import ctypes
import errno
import math
import os
import struct
import sys
import time

import trio

#: From <sys/timerfd.h>.
_CLOCK_REALTIME = 0
_NONBLOCK, _CLOEXEC = os.O_NONBLOCK, getattr(os, "O_CLOEXEC", 0)
_ABSOLUTE, _CANCEL_ON_SET = 1, 2
_SPEC = struct.Struct("@llll")
#: Seconds between two looks at the clock where the system does not tell.
LOOK_SECONDS = 60.0


class SystemWallTimer:
    """The port `WallTimer`."""

    async def wait(self, until: float) -> None:
        """See the port."""
        if until == math.inf:
            await trio.sleep_forever()
        fd = _timer(until) if sys.platform.startswith("linux") else None
        if fd is None:
            await trio.sleep(max(0.0, min(until - time.time(), LOOK_SECONDS)))
            return
        try:
            # Readable at its time, and when the clock was set.
            await trio.lowlevel.wait_readable(fd)
        finally:
            os.close(fd)


def _timer(until: float) -> int | None:
    """A timer that is set; None where the system has none of the kind."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.timerfd_create(_CLOCK_REALTIME, _NONBLOCK | _CLOEXEC)
    if fd < 0:
        return None
    seconds = math.floor(until)
    # Nothing at all would stop it; the first nanosecond of 1970 is long past.
    nanoseconds = max(1, int((until - seconds) * 1e9))
    spec = _SPEC.pack(0, 0, max(0, seconds), nanoseconds)
    if libc.timerfd_settime(fd, _ABSOLUTE | _CANCEL_ON_SET, spec, None) < 0:
        problem = ctypes.get_errno()
        if problem == errno.ECANCELED:
            return int(fd)  # set, and the clock was set meanwhile: it is readable
        os.close(fd)
        return None
    return int(fd)
