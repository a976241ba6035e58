"""A client of server-sent events that hears exactly what a browser would."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from forge_actors.client.wire import ResponseReader

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


class Heard(NamedTuple):
    name: str
    id: str
    data: Any


class Parser:
    """The rules of the standard for a stream of events, as far as they are used."""

    def __init__(self) -> None:
        self.last_id = ""
        self.comments = 0
        self._rest = b""
        self._name, self._data = "message", ""

    def feed(self, data: bytes) -> list[Heard]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        heard = []
        for line in lines:
            field, _, value = line.decode().partition(":")
            value = value.removeprefix(" ")
            if not line:
                if self._data:
                    told = json.loads(self._data)
                    heard.append(Heard(self._name, self.last_id, told))
                self._name, self._data = "message", ""
            elif not field:
                self.comments += 1
            elif field == "event":
                self._name = value
            elif field == "id":
                self.last_id = value
            elif field == "data":
                self._data += value
            else:
                assert field == "retry", line
        return heard


class Listener:
    """One connection with one request for events."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.parser = Parser()
        self.reader = ResponseReader()
        self.refusal = b""
        self._heard: list[Heard] = []

    @property
    def status(self) -> int | None:
        return self.reader.status

    async def begun(self) -> None:
        """Wait for the head of the answer and its first bytes."""
        while not self.reader.status:
            await self._read()

    async def next(self) -> Heard | None:
        """The next event; None at the end, which has to be a clean one."""
        while not self._heard:
            if self.reader.complete:
                return None
            await self._read()
        return self._heard.pop(0)

    async def some(self, count: int) -> list[Heard]:
        found = []
        while len(found) < count:
            one = await self.next()
            assert one is not None, found
            found.append(one)
        return found

    async def _read(self) -> None:
        data = await self.stream.receive_some()
        if not data:
            raise EOFError
        body = self.reader.feed(data)
        if self.status == 200:
            self._heard += self.parser.feed(body)
        else:
            self.refusal += body


@asynccontextmanager
async def listening(
    path: str, query: str = "", **headers: str
) -> AsyncGenerator[Listener, None]:
    lines = [f"GET /v1/events{query} HTTP/1.1", "host: localhost"]
    lines += [f"{name.replace('_', '-')}: {text}" for name, text in headers.items()]
    if "accept" not in headers:
        lines.append("accept: text/event-stream")
    stream = await trio.open_unix_socket(path)
    assert isinstance(stream, trio.SocketStream)
    async with stream:
        await stream.send_all("\r\n".join([*lines, "", ""]).encode())
        listener = Listener(stream)
        await listener.begun()
        yield listener
