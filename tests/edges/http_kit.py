"""What the tests of the HTTP server share: a server, and a client with no opinions."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import trio

from forge_actors.client.wire import ResponseReader, encode_request
from forge_actors.edges.gateway.listeners import unix_listener
from forge_actors.edges.gateway.messages import Limits, Request, Response, Stream
from forge_actors.edges.gateway.server import Server

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from forge_actors.edges.gateway.messages import Handler

PING = encode_request("GET", "/ping")
KEEP = b"GET /ping HTTP/1.1\r\nhost: localhost\r\n\r\n"


async def pong(request: Request) -> Response | Stream:
    return Response(200, b"pong " + request.body, "text/plain")


@asynccontextmanager
async def serving(
    path: Path | str, handler: Handler = pong, limits: Limits | None = None
) -> AsyncGenerator[Server, None]:
    server = Server(handler, limits=limits or Limits())
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, [unix_listener(path)])
        yield server
        nursery.cancel_scope.cancel()


async def connect(path: str) -> trio.SocketStream:
    stream = await trio.open_unix_socket(path)
    assert isinstance(stream, trio.SocketStream)
    return stream


async def read_all(stream: trio.SocketStream) -> bytes:
    data = b""
    try:
        async for piece in stream:
            data += piece
    except trio.BrokenResourceError:
        pass
    return data


async def read_until(stream: trio.SocketStream, end: bytes) -> bytes:
    data = b""
    while not data.endswith(end):
        piece = await stream.receive_some()
        assert piece, data
        data += piece
    return data


async def ask(path: str, raw: bytes) -> tuple[int | None, bytes]:
    """Send these bytes; the status and the body of the first answer."""
    async with await connect(path) as stream:
        with suppress(trio.BrokenResourceError):
            await stream.send_all(raw)
        reader = ResponseReader()
        body = reader.feed(await read_all(stream))
        return reader.status, body


def head(*lines: str) -> bytes:
    return "\r\n".join([*lines, "", ""]).encode()
