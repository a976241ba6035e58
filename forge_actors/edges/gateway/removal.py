"""To be told by the system that a file was removed or moved away. Linux alone can."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Iterator

# From <sys/inotify.h>. The number of links is one of the attributes: a socket that
# somebody listens on is never "deleted itself".
_ATTRIB, _MOVE_SELF = 0x004, 0x800
_EVENTS = 4096


@contextlib.contextmanager
def watching(path: str) -> Iterator[int]:
    """A descriptor that is readable once something was done to the file at `path`.

    Raises:
        FileNotFoundError: there is none.
        OSError: the system cannot tell of this one.
    """
    if not sys.platform.startswith("linux"):
        raise OSError("files can be watched on Linux only")
    libc = ctypes.CDLL(None, use_errno=True)
    fd = _checked(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    try:
        mask = _ATTRIB | _MOVE_SELF
        _checked(libc.inotify_add_watch(fd, os.fsencode(path), mask))
        yield fd
    finally:
        os.close(fd)


async def next_event(fd: int) -> None:
    """Wait until something was done to the file that `fd` watches."""
    await trio.lowlevel.wait_readable(fd)
    os.read(fd, _EVENTS)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
