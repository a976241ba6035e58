"""Descriptors that a service hands over, each batch with the line of an order.

They are open in this process only until the order has begun, or has not: whatever they
stand for, such as a lock, is the job's alone then. No other child can inherit them, as
they are never without close-on-exec here.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.edges.node.agent.desk import Desk

#: See `domain.descriptors`, which is not loaded here.
FIRST, MOST = 3, 16

_INT_SIZE = 4
_SPACE = socket.CMSG_SPACE(MOST * _INT_SIZE)
#: Elsewhere than on Linux they cannot be closed on exec from the start, but there is
#: one thread, which starts nothing in between.
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class Handed:
    """What came over one socket and belongs to lines that were not read yet."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._batches: deque[list[int]] = deque()

    def receive(self, size: int) -> bytes:
        """As `socket.recv`; descriptors that come too are kept.

        The system never joins two batches in one call, and gives one with a byte of
        its line or an earlier one: so the first is that of the next line that has any.
        """
        data, ancillary, flags, _ = self._socket.recvmsg(size, _SPACE, _CLOEXEC)
        if ancillary or flags & socket.MSG_CTRUNC:
            self._batches.append(_numbers(ancillary))
        return data

    def take(self, count: int) -> list[int]:
        """Those of a line; none if the system could not give us all of them."""
        batch = self._batches.popleft() if self._batches else []
        try:
            if len(batch) == count:
                return _lifted(batch)
        except OSError:  # too many are open
            pass
        _close(batch)
        return []

    def close(self) -> None:
        while self._batches:
            _close(self._batches.popleft())


def obey(desk: Desk[Any], message: dict[str, Any], handed: Handed) -> None:
    """Have the desk obey an order with descriptors, and close ours then."""
    taken = handed.take(message["descriptors"])
    message["descriptors"] = taken
    try:
        desk.obey(message)
    finally:
        _close(taken)


@contextmanager
def reserved(count: int) -> Iterator[None]:
    """Let nothing that is opened in the block have a number that a job has for one."""
    held: list[int] = []
    try:
        while not held or held[-1] < FIRST + count:
            held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        yield
    finally:
        _close(held)


def _numbers(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    numbers = memoryview(b"".join(data for _, _, data in ancillary))
    whole = len(numbers) - len(numbers) % _INT_SIZE
    found = list(numbers[:whole].cast("i"))
    if not _CLOEXEC:
        for number in found:
            os.set_inheritable(number, False)
    return found


def _lifted(batch: list[int]) -> list[int]:
    """Copies above the numbers that the job has for them, so that none of these is in
    the way of another.

    Raises:
        OSError: too many are open; the batch is as it was.
    """
    above = FIRST + len(batch)
    lifted: list[int] = []
    try:
        for number in batch:
            copy = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, above)
            lifted.append(copy)
    except OSError:
        _close(lifted)
        raise
    _close(batch)
    return lifted


def _close(numbers: list[int]) -> None:
    for number in numbers:
        os.close(number)
