"""The socket of a service stays where its clients look for it."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.domain.errors import Refused
from forge_actors.edges.gateway import door as door_module
from forge_actors.edges.gateway.door import Door
from forge_actors.edges.gateway.messages import Response
from forge_actors.edges.gateway.server import Server

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from forge_actors.edges.gateway.messages import Request

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux can tell")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s")


class Told(logging.Handler):
    """What the door says of itself; a test waits for the next line of it."""

    def __init__(self) -> None:
        super().__init__()
        self.send, self.lines = trio.open_memory_channel[str](10)

    def emit(self, record: logging.LogRecord) -> None:
        self.send.send_nowait(record.getMessage())


@pytest.fixture
def told() -> Iterator[Told]:
    handler = Told()
    door_module.log.addHandler(handler)
    yield handler
    door_module.log.removeHandler(handler)


async def hello(_: Request) -> Response:
    return Response(200, b"hello", "text/plain")


@asynccontextmanager
async def kept(path: str) -> AsyncGenerator[Door, None]:
    door = Door(lambda: path)
    server = Server(hello)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            await nursery.start(server.serve, [door])
            nursery.start_soon(door.keep)
            await trio.testing.wait_all_tasks_blocked()
            yield door
            server.stop()  # and `keep` ends with it
    door.remove()


async def ask(path: str) -> bytes:
    stream = await trio.open_unix_socket(path)
    async with stream:
        await stream.send_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return await stream.receive_some()


@linux
async def test_a_socket_that_is_removed_moved_or_replaced_is_made_again(
    path: str, told: Told
) -> None:
    async with kept(path):
        for number, away in enumerate((os.unlink, _move, _replace, os.unlink)):
            away(path)
            assert await told.lines.receive() == (
                f"the socket {path} was removed, and is made again"
            )
            assert (await ask(path)).endswith(b"hello"), number
            assert os.stat(path).st_mode & 0o777 == 0o600
    assert not os.path.lexists(path)


async def test_clients_that_are_connected_stay_so(path: str, told: Told) -> None:
    async with kept(path) as door, await trio.open_unix_socket(path) as stream:
        os.unlink(path)
        door.check()
        await told.lines.receive()
        await stream.send_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await stream.receive_some()).endswith(b"hello")


async def test_where_nobody_tells_of_it_the_door_looks_when_it_is_asked_to(
    path: str, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    def watching(_: str) -> None:
        raise OSError("no such thing here")

    monkeypatch.setattr(door_module, "watching", watching)
    async with kept(path) as door:
        os.unlink(path)
        await trio.testing.wait_all_tasks_blocked()
        assert not os.path.lexists(path)
        door.check()
        assert "made again" in await told.lines.receive()
        assert (await ask(path)).endswith(b"hello")


async def test_what_stands_in_its_place_is_not_touched(path: str, told: Told) -> None:
    async with kept(path) as door:
        _move(path)
        Path(path).write_text("mine")
        door.check()
        line = await told.lines.receive()
        assert "cannot be made again" in line
        assert f"kill -HUP {os.getpid()} makes the service try again" in line
        os.unlink(path)
        door.check()
        assert "is made again" in await told.lines.receive()
        assert (await ask(path)).endswith(b"hello")
        _move(path)
        Path(path).write_text("mine")
    assert Path(path).read_text() == "mine"


async def test_a_door_that_is_not_kept_leaves_the_socket_of_another(path: str) -> None:
    door = Door(lambda: path)
    with pytest.raises(Refused, match="another process listens"):
        Door(lambda: path)
    await door.aclose()
    with pytest.raises(trio.ClosedResourceError):
        await door.accept()
    other = Door(lambda: path)
    door.remove()
    async with await trio.open_unix_socket(path), await other.accept():
        pass
    await other.aclose()
    other.remove()
    assert not os.path.lexists(path)


def _move(path: str) -> None:
    os.rename(path, f"{path}.moved")


def _replace(path: str) -> None:
    Path(f"{path}.new").touch()
    os.rename(f"{path}.new", path)
    os.unlink(path)
