"""Descriptors that go to the node agent together with an order."""

from __future__ import annotations

import os
import socket
from array import array
from typing import TYPE_CHECKING

from forge_actors.domain.descriptors import MAX_DESCRIPTORS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.domain.descriptors import Descriptors


class OpenDescriptors:
    """Those of this process; implements `domain.descriptors.Descriptors`."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = tuple(numbers)

    @property
    def numbers(self) -> tuple[int, ...]:
        return self._numbers

    def close(self) -> None:
        numbers, self._numbers = self._numbers, ()
        for number in numbers:
            os.close(number)


class HandingLine(bytes):
    """The line of an order whose process is given descriptors, which go with it."""

    descriptors: Descriptors

    def send(self, sock: socket.socket) -> bytes:
        """Send it with them; what the socket had no room for, which is never all.

        Nothing is sent once they are closed: the attempt has begun, or never will.

        Raises:
            BlockingIOError: there is no room at all.
            OSError: nobody reads any more.
        """
        numbers = self.descriptors.numbers
        if not numbers:
            return b""
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", numbers))
        line = self + b"\n"
        return line[sock.sendmsg([line], [rights]) :]


def handing_line(line: bytes, descriptors: Descriptors) -> HandingLine:
    """The line of an order, which says how many come with it."""
    count = len(descriptors.numbers)
    assert 0 < count <= MAX_DESCRIPTORS, f"{count} are not between 1 and the most"
    made = HandingLine(b'{"descriptors":%d,' % count + line[1:])
    made.descriptors = descriptors
    return made
