"""A service that breaks off: was somebody there, and may something have been done?"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import anyio
import pytest

import forge_actors.client
from forge_actors.client.errors import NoService
from forge_actors.client.home import LOCK
from forge_actors.client.sync import Service
from forge_actors.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Call = Callable[[str, str], object]

NOBODY, BROKE_OFF = "no service runs on", "may or may not have been done"


def waiting(home: str, method: str) -> object:
    return Service(home).request(method, ("status",))


def under_anyio(home: str, method: str) -> object:
    async def ask() -> None:
        client = forge_actors.client.Client(home)
        await (client.status() if method == "GET" else client.undrain())

    return anyio.run(ask, backend="trio")


@contextmanager
def breaking_off(home: Path, answer: bytes = b"") -> Iterator[str]:
    """A home whose socket takes one request and is closed behind this answer."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home / "control.sock"))
        listener.listen()

        def serve() -> None:
            with suppress(OSError), listener.accept()[0] as connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield str(home)
        finally:
            # Where nobody has come, nobody comes any more: the thread would wait for
            # ever, and with it the interpreter at its end.
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def owned(home: Path) -> Iterator[None]:
    """The home has a process that serves it, as its lock says: this one."""
    with open(home / LOCK, "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        json.dump({"pid": os.getpid(), "serving": True}, lock)
        lock.flush()
        yield


@pytest.mark.parametrize("call", [waiting, under_anyio])
class TestBreakingOff:
    def test_who_only_asked_and_heard_nothing_of_nobody_is_told_so(
        self, tmp_path: Path, call: Call
    ) -> None:
        with breaking_off(tmp_path) as home, pytest.raises(NoService, match=NOBODY):
            call(home, "GET")

    def test_what_would_change_something_may_have_been_done(
        self, tmp_path: Path, call: Call
    ) -> None:
        with (
            breaking_off(tmp_path) as home,
            pytest.raises(Unavailable, match=BROKE_OFF),
        ):
            call(home, "DELETE")

    def test_a_service_that_is_there_has_broken_off(
        self, tmp_path: Path, call: Call
    ) -> None:
        with (
            owned(tmp_path),
            breaking_off(tmp_path) as home,
            pytest.raises(Unavailable, match=BROKE_OFF),
        ):
            call(home, "GET")

    @pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\n", b"HELO\r\n\r\n"])
    def test_a_part_of_an_answer_is_from_somebody(
        self, tmp_path: Path, call: Call, answer: bytes
    ) -> None:
        with (
            breaking_off(tmp_path, answer) as home,
            pytest.raises(Unavailable, match=BROKE_OFF),
        ):
            call(home, "GET")
