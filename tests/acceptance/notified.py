"""A service manager that hears what a service tells it."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from queue import SimpleQueue
from typing import TYPE_CHECKING

from tests.acceptance.bench import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Heard:
    """What a service manager hears, which it never leaves lying."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._messages: SimpleQueue[list[str]] = SimpleQueue()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        while message := self._listening.recv(4096):
            self._messages.put(message.decode().split("\n"))

    def until(self, line: str) -> list[list[str]]:
        """Every message up to the one with a line that begins like this."""
        heard: list[list[str]] = []
        while not any(each.startswith(line) for each in (heard or [[]])[-1]):
            heard.append(self._messages.get(timeout=PATIENCE))
        return heard

    def end(self) -> None:
        self._thread.join()


@contextmanager
def manager(path: Path) -> Iterator[Heard]:
    """The socket of a service manager, as systemd's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(path))
        heard = Heard(listening)
        try:
            yield heard
        finally:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
                last.sendto(b"", str(path))
            heard.end()
