"""Waiting for files that are not there yet, such as programs that somebody installs.

By inotify, so it costs nothing while nothing of these names comes. Of a folder that is
not there either, the nearest one above that is there is watched for the next.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# From <sys/inotify.h>: what may make a program of a name.
_ATTRIB, _CLOSE_WRITE, _MOVED_TO, _CREATE = 0x004, 0x008, 0x080, 0x100
_Q_OVERFLOW, _IGNORED, _ONLYDIR = 0x4000, 0x8000, 0x01000000
_MASK = _ATTRIB | _CLOSE_WRITE | _MOVED_TO | _CREATE | _ONLYDIR
_EVENT = struct.Struct("iIII")
_PIECE = 16 * 1024


class Arrivals:
    """What is watched for; `wait` returns when any of it may have come."""

    def __init__(self, fd: int, names: dict[int, set[bytes]]) -> None:
        self._fd = fd
        self._names = names

    async def wait(self) -> None:
        if self._fd < 0:
            await trio.sleep_forever()
        while True:
            await trio.lowlevel.wait_readable(self._fd)
            with suppress(BlockingIOError):
                while piece := os.read(self._fd, _PIECE):
                    if self._tells(piece):
                        return

    def _tells(self, piece: bytes) -> bool:
        place = 0
        while place < len(piece):
            number, mask, _, length = _EVENT.unpack_from(piece, place)
            place += _EVENT.size
            name = piece[place : place + length].rstrip(b"\0")
            place += length
            if mask & (_Q_OVERFLOW | _IGNORED) or name in self._names.get(number, ()):
                return True
        return False


@contextmanager
def watching(paths: Iterable[str]) -> Iterator[Arrivals]:
    """While the block lasts it is seen when one of these files comes or changes.

    Where the system does not tell, `wait` waits for ever.
    """
    fd = -1
    names: dict[int, set[bytes]] = {}
    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform.startswith("linux"):
        fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if fd >= 0:
            for folder, name in map(_place, paths):
                number = libc.inotify_add_watch(fd, os.fsencode(folder), _MASK)
                if number >= 0:
                    names.setdefault(number, set()).add(os.fsencode(name))
        yield Arrivals(fd, names)
    finally:
        if fd >= 0:
            os.close(fd)


def _place(path: str) -> tuple[str, str]:
    """The nearest folder above that is there, and the name that is missing in it."""
    folder, name = os.path.split(os.path.abspath(path))
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        folder, name = os.path.split(folder)
    return folder, name
