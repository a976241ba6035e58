"""To be told by the system what becomes of a file, or of those in a folder. Linux alone
can."""

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
_CLOSE_WRITE, _MOVED_TO = 0x008, 0x080
#: The file itself was removed or moved away.
REMOVED = _ATTRIB | _MOVE_SELF
#: In the folder, a file was written to or put in its place.
WRITTEN = _CLOSE_WRITE | _MOVED_TO
_EVENTS = 4096


@contextlib.contextmanager
def watching(path: str, mask: int = REMOVED) -> Iterator[int]:
    """A descriptor that is readable once one of these was done to what is at `path`.

    Raises:
        FileNotFoundError: there is none.
        OSError: the system cannot tell of this one.
    """
    if not sys.platform.startswith("linux"):
        raise OSError("files can be watched on Linux only")
    libc = ctypes.CDLL(None, use_errno=True)
    fd = _checked(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    try:
        _checked(libc.inotify_add_watch(fd, os.fsencode(path), mask))
        yield fd
    finally:
        os.close(fd)


async def next_event(fd: int) -> None:
    """Wait until something was done to what `fd` watches."""
    await trio.lowlevel.wait_readable(fd)
    os.read(fd, _EVENTS)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
