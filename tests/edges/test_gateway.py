"""The HTTP server with real sockets: what it answers and what it refuses."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.client.wire import ResponseReader, encode_request
from forge_actors.edges.gateway.messages import Limits, Request, Response, Send, Stream
from tests.edges.http_kit import (
    KEEP,
    PING,
    ask,
    connect,
    head,
    read_all,
    read_until,
    serving,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s")


# What is allowed


async def test_a_request_with_a_body_is_answered(path: str) -> None:
    async with serving(path):
        raw = encode_request("POST", "/ping", b"body")
        assert await ask(path, raw) == (200, b"pong body")


async def test_one_connection_carries_many_requests(path: str) -> None:
    async with serving(path) as server, await connect(path) as stream:
        for _ in range(3):
            await stream.send_all(KEEP)
            assert b"200" in await read_until(stream, b"pong ")
        assert server.connections == 1


async def test_requests_sent_ahead_are_answered_in_order(path: str) -> None:
    async def echo(request: Request) -> Response:
        return Response(200, request.path[0].encode(), "text/plain")

    async with serving(path, echo), await connect(path) as stream:
        names = [f"n{number}" for number in range(50)]
        raw = b"".join(head(f"GET /{n} HTTP/1.1", "host: localhost") for n in names)
        await stream.send_all(raw)
        data = await read_until(stream, b"n49")
        places = [data.index(f"\r\n\r\n{name}".encode()) for name in names]
        assert places == sorted(places)


async def test_head_has_the_length_and_no_body(path: str) -> None:
    async with serving(path):
        raw = head("HEAD /ping HTTP/1.1", "host: localhost", "connection: close")
        async with await connect(path) as stream:
            await stream.send_all(raw)
            data = await read_all(stream)
        assert b"content-length: 5" in data.lower()
        assert data.endswith(b"\r\n\r\n")


async def test_a_body_comes_after_100_continue(path: str) -> None:
    async with serving(path), await connect(path) as stream:
        lines = ("host: localhost", "content-length: 2", "expect: 100-continue")
        await stream.send_all(head("POST /ping HTTP/1.1", *lines))
        assert b" 100 " in await read_until(stream, b"\r\n\r\n")
        await stream.send_all(b"ab")
        assert b"200" in await read_until(stream, b"pong ab")


async def test_a_stream_arrives_piece_by_piece(path: str) -> None:
    go_on = trio.Event()

    async def count(send: Send) -> None:
        await send(b"one")
        await go_on.wait()
        await send(b"two")

    async def handler(_: Request) -> Stream:
        return Stream(count)

    async with serving(path, handler), await connect(path) as stream:
        await stream.send_all(PING)
        reader = ResponseReader()
        body = b""
        while body != b"one":
            body += reader.feed(await stream.receive_some())
        go_on.set()
        body += reader.feed(await read_all(stream))
        assert (body, reader.complete) == (b"onetwo", True)


async def test_what_is_asked_for_may_begin_with_our_name(path: str) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, f"{request.path} {request.query}".encode())

    async with serving(path, handler):
        for target, told in (
            ("http://localhost/v1/jobs?limit=1", "('v1', 'jobs') limit=1"),
            ("HTTP://localhost", "() "),
            ("/v1/a?u=http://b/c", "('v1', 'a') u=http://b/c"),
        ):
            raw = head(f"GET {target} HTTP/1.1", "host: localhost", "connection: close")
            assert await ask(path, raw) == (200, told.encode())


# What is refused


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00garbage\r\n\r\n", 400),
        (head("GET / HTTP/1.1"), 400),
        (head("GET / HTTP/1.1", "host: localhost", "host: localhost"), 400),
        (head("GET / HTTP/1.1", "host: evil.example"), 403),
        (head("GET / HTTP/1.1", "host: localhost:80"), 403),
        (head("GET http://evil.example/ HTTP/1.1", "host: localhost"), 403),
        (head("GET http://localhost/ HTTP/1.1", "host: evil.example"), 403),
        (head("GET / HTTP/1.0"), 403),
        (head("GET / HTTP/1.1", "host: localhost", "origin: http://localhost"), 403),
        (head("GET / HTTP/1.1", "host: localhost", "x: " + "y" * 20_000), 431),
        (b"GET /" + b"y" * 40_000, 431),
        (head("POST / HTTP/1.1", "host: localhost", "content-length: 99999999"), 413),
        (head("POST / HTTP/1.1", "host: localhost", "content-length: -1"), 400),
        (
            head(
                "POST / HTTP/1.1",
                "host: localhost",
                "content-length: 3",
                "transfer-encoding: chunked",
            ),
            400,
        ),
        (
            head("POST / HTTP/1.1", "host: localhost", "transfer-encoding: chunked")
            + b"fffff\r\n"
            + b"z" * 0x8FFFF,
            413,
        ),
    ],
)
async def test_a_broken_rule_is_answered_and_the_connection_closed(
    path: str, raw: bytes, status: int
) -> None:
    async with serving(path, limits=Limits(body_bytes=1024)) as server:
        found, body = await ask(path, raw)
        assert found == status
        assert b'"code":' in body
        await trio.testing.wait_all_tasks_blocked()
        assert server.connections == 0
        assert (await ask(path, PING))[0] == 200


async def test_a_head_is_refused_without_a_body(path: str) -> None:
    async with serving(path):
        async with await connect(path) as stream:
            await stream.send_all(head("HEAD / HTTP/1.1", "host: evil.example"))
            data = await read_all(stream)
        assert data.startswith(b"HTTP/1.1 403")
        assert data.endswith(b"\r\n\r\n")


async def test_another_user_is_refused(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(path):
        monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
        assert (await ask(path, PING))[0] == 403


async def test_one_connection_too_many_is_turned_away_at_once(path: str) -> None:
    async with serving(path, limits=Limits(connections=2)) as server:
        async with await connect(path), await connect(path):
            await trio.testing.wait_all_tasks_blocked()
            assert (await ask(path, PING))[0] == 503
        await trio.testing.wait_all_tasks_blocked()
        assert server.connections == 0
        assert (await ask(path, PING))[0] == 200


async def test_a_failing_handler_shows_no_traceback(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(_: Request) -> Response:
        raise ValueError("secret of the house")

    async with serving(path, handler):
        status, body = await ask(path, PING)
    assert status == 500
    assert b"secret" not in body
    assert "secret of the house" in caplog.text


async def test_a_stream_that_fails_is_cut_off(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)

    async def fail(send: Send) -> None:
        await send(b"half")
        raise ValueError

    async def handler(_: Request) -> Stream:
        return Stream(fail)

    async with serving(path, handler), await connect(path) as stream:
        await stream.send_all(PING)
        reader = ResponseReader()
        assert reader.feed(await read_all(stream)) == b"half"
        assert not reader.complete
