"""ASGI applications behind our own server, over real sockets."""

from __future__ import annotations

import logging
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import trio

from forge_actors.client.wire import encode_request
from forge_actors.edges.gateway.asgi import asgi_handler
from forge_actors.edges.gateway.listeners import unix_listener
from forge_actors.edges.gateway.messages import Limits
from forge_actors.edges.gateway.server import Server
from tests.edges.http_kit import ask, connect, head, read_all, read_until, serving

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    Receive = Callable[[], Awaitable[Any]]
    Send = Callable[[Any], Awaitable[None]]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s")


def start(status: int = 200, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def piece(data: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def test_the_application_is_told_all_of_a_request_and_its_answer_is_given(
    path: str,
) -> None:
    told: list[Any] = []

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        told.append((scope["method"], scope["path"], scope["query_string"]))
        told.append(dict(scope["headers"]))
        told.append(await receive())
        length = (b"content-length", b"5")
        await send(start(202, (b"content-type", b"text/x"), (b"odd", b"one"), length))
        await send(piece(b"whole", more=False))
        told.append(await receive())

    raw = encode_request("POST", "/mcp/a%20b?c=d", b"body")
    async with serving(path, asgi_handler(app)), await connect(path) as stream:
        await stream.send_all(raw)
        answer = await read_all(stream)
    assert told[0] == ("POST", "/mcp/a b", b"c=d")
    assert told[1][b"content-length"] == b"4"
    assert told[2] == {"type": "http.request", "body": b"body", "more_body": False}
    assert told[3] == {"type": "http.disconnect"}
    assert answer.startswith(b"HTTP/1.1 202 ")
    lines = answer.lower().split(b"\r\n")
    assert {b"content-type: text/x", b"odd: one", b"content-length: 5"} <= set(lines)
    assert answer.endswith(b"\r\n\r\nwhole")


@pytest.mark.parametrize("odd", [(), ("expect: 100-continue",)], ids=["plain", "h11"])
async def test_pieces_arrive_while_the_application_goes_on(
    path: str, odd: tuple[str, ...]
) -> None:
    head_is_there, go_on = trio.Event(), trio.Event()

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await send(start(201, (b"connection", b"keep-alive")))
        await head_is_there.wait()
        await send(piece(b"first"))
        await go_on.wait()
        await send(piece(b"last", more=False))

    request = head("GET /mcp HTTP/1.1", "host: localhost", *odd)
    async with serving(path, asgi_handler(app)), await connect(path) as stream:
        for _ in range(2):  # the connection goes on after an answer in pieces
            await stream.send_all(request)
            assert b" 201 " in await read_until(stream, b"\r\n\r\n")
            head_is_there.set()
            assert await read_until(stream, b"first\r\n") == b"5\r\nfirst\r\n"
            go_on.set()
            assert await read_until(stream, b"0\r\n\r\n") == b"4\r\nlast\r\n0\r\n\r\n"


@pytest.mark.parametrize("pieces", [1, 2])
async def test_the_end_is_told_only_when_all_of_the_answer_is_on_its_way(
    path: str, pieces: int
) -> None:
    size = 4_000_000

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await receive()
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                assert (await receive())["type"] == "http.disconnect"
                nursery.cancel_scope.cancel()

            nursery.start_soon(watch)
            told = [(b"content-length", b"%d" % size)] if pieces == 1 else []
            await send(start(200, *told))
            for number in range(pieces):
                await send(piece(b"x" * (size // pieces), more=number + 1 < pieces))

    request = encode_request("GET", "/mcp")
    async with serving(path, asgi_handler(app)):
        status, body = await ask(path, request)
    assert (status, len(body)) == (200, size)


@pytest.mark.parametrize("begun", [True, False])
async def test_a_client_that_leaves_cancels_the_application(
    path: str, begun: bool
) -> None:
    at_work, ended = trio.Event(), trio.Event()

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await receive()
        if begun:
            await send(start())
            await send(piece(b"x"))
        try:
            at_work.set()
            await receive()
        finally:
            ended.set()

    async with serving(path, asgi_handler(app)):
        stream = await connect(path)
        await stream.send_all(head("GET /mcp HTTP/1.1", "host: localhost"))
        await at_work.wait()
        await stream.aclose()
        await ended.wait()


async def test_a_reader_that_is_stuck_holds_nobody_up(path: str) -> None:
    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await send(start())
        while True:
            sending.set()
            await send(piece(b"x" * 1_000_000))

    sending = trio.Event()
    limits = Limits(drain=0.0, write_timeout=3600.0)
    server = Server(asgi_handler(app), limits=limits)
    with socket.socket(socket.AF_UNIX) as stuck:
        async with trio.open_nursery() as nursery:
            await nursery.start(server.serve, [unix_listener(path)])
            stuck.connect(path)
            stuck.sendall(head("GET /mcp HTTP/1.1", "host: localhost"))
            await sending.wait()
            server.stop()


async def test_one_that_takes_too_long_to_read_is_given_up(path: str) -> None:
    ended = trio.Event()

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        try:
            await send(start())
            while True:
                # As programs of others do: an error is no reason to stop.
                with suppress(OSError):
                    await send(piece(b"x" * 1_000_000))
        finally:
            ended.set()

    async with serving(path, asgi_handler(app), Limits(write_timeout=0.01)):
        with socket.socket(socket.AF_UNIX) as stuck:
            stuck.connect(path)
            stuck.sendall(head("GET /mcp HTTP/1.1", "host: localhost"))
            await ended.wait()


@pytest.mark.parametrize("what", ["raises", "says nothing", "odd header"])
async def test_an_application_that_fails_is_answered_for(
    path: str, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def app(scope: Any, receive: Receive, send: Send) -> None:
        if what == "raises":
            raise ValueError("secret")
        if what == "odd header":
            await send(start(200, (b"a", b"b\r\nc: d")))

    with caplog.at_level(logging.CRITICAL):
        async with serving(path, asgi_handler(app)):
            status, body = await ask(path, encode_request("GET", "/mcp"))
    assert status == 500
    assert b"INTERNAL" in body
    assert b"secret" not in body


async def test_an_answer_that_breaks_off_is_no_whole_one(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await send(start())
        await send(piece(b"half"))

    with caplog.at_level(logging.CRITICAL):
        async with serving(path, asgi_handler(app)), await connect(path) as stream:
            await stream.send_all(head("GET /mcp HTTP/1.1", "host: localhost"))
            answer = await read_all(stream)
    assert b"half" in answer
    assert not answer.endswith(b"0\r\n\r\n")


async def test_a_head_asked_for_alone_has_no_body(path: str) -> None:
    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await send(start())
        await send(piece(b"half"))
        await send(piece(b"other half", more=False))

    request = head("HEAD /mcp HTTP/1.1", "host: localhost", "connection: close")
    async with serving(path, asgi_handler(app)), await connect(path) as stream:
        await stream.send_all(request)
        answer = await read_all(stream)
    assert b"half" not in answer
