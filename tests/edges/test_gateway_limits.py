"""The HTTP server with real sockets: what it cuts off, and what it survives."""

from __future__ import annotations

import functools
import os
import socket
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forge_actors.client.wire import encode_request
from forge_actors.domain.errors import Refused
from forge_actors.edges.gateway.connection import LINGER_SECONDS, Connection
from forge_actors.edges.gateway.listeners import unix_listener
from forge_actors.edges.gateway.lookout import PATIENCE_SECONDS
from forge_actors.edges.gateway.messages import Request, Response, Send, Stream
from forge_actors.edges.gateway.server import Server
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
    from collections.abc import Sequence


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s")


# What is cut off


@pytest.mark.mock_clock
@pytest.mark.parametrize("start", [b"", b"GET / HT"])
async def test_a_slow_head_is_cut_off(path: str, start: bytes) -> None:
    async with serving(path) as server, await connect(path) as stream:
        if start:
            await stream.send_all(start)
        begin = trio.current_time()
        data = await read_all(stream)
        assert data.startswith(b"HTTP/1.1 408") == (start == b"GET / HT")
        assert trio.current_time() - begin == pytest.approx(10, abs=0.1)
        await trio.sleep(LINGER_SECONDS * 2)
        assert server.connections == 0


@pytest.mark.mock_clock
async def test_a_trickle_of_bytes_buys_no_time(path: str) -> None:
    async with serving(path), await connect(path) as stream:
        sent = 0

        async def trickle() -> None:
            nonlocal sent
            with suppress(trio.BrokenResourceError):
                while True:
                    await stream.send_all(b"x")
                    sent += 1
                    await trio.sleep(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trickle)
            assert b"408" in await read_all(stream)
        assert sent < 15


@pytest.mark.mock_clock
async def test_a_slow_body_is_answered_with_408(path: str) -> None:
    async with serving(path), await connect(path) as stream:
        lines = ("host: localhost", "content-length: 9")
        await stream.send_all(head("POST / HTTP/1.1", *lines) + b"12")
        assert (await read_all(stream)).startswith(b"HTTP/1.1 408")


@pytest.mark.mock_clock
async def test_an_idle_connection_is_closed_without_a_word(path: str) -> None:
    async with serving(path), await connect(path) as stream:
        await stream.send_all(KEEP)
        await read_until(stream, b"pong ")
        begin = trio.current_time()
        assert await read_all(stream) == b""
        assert trio.current_time() - begin == pytest.approx(30, abs=1)


async def flood(send: Send) -> None:
    while True:
        await send(b"x" * 100_000)


async def flooding(_: Request) -> Stream:
    return Stream(flood)


async def test_a_cancel_wins_over_a_client_that_never_reads(path: str) -> None:
    with trio.fail_after(30):
        async with serving(path, flooding):
            stuck = await connect(path)
            await stuck.send_all(PING)
            await trio.testing.wait_all_tasks_blocked()
    await stuck.aclose()


@pytest.mark.mock_clock
async def test_a_client_that_never_reads_is_cut_off(path: str) -> None:
    async with serving(path, flooding) as server, await connect(path) as stream:
        await stream.send_all(PING)
        await trio.sleep(16)
        assert server.connections == 0


async def test_a_client_that_leaves_cancels_its_handler(path: str) -> None:
    entered, left = trio.Event(), trio.Event()

    async def handler(_: Request) -> Response:
        entered.set()
        try:
            await trio.sleep_forever()
        finally:
            left.set()

    async with serving(path, handler):
        async with await connect(path) as stream:
            await stream.send_all(PING)
            await entered.wait()
        with trio.fail_after(30):
            await left.wait()


async def test_what_is_answered_at_once_is_not_watched(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def watch(connection: Connection, nursery: trio.Nursery) -> None:
        raise AssertionError

    monkeypatch.setattr(Connection, "watch", watch)
    async with serving(path), await connect(path) as stream:
        for _ in range(20):
            await stream.send_all(KEEP)
            await read_until(stream, b"pong ")


@pytest.mark.mock_clock
async def test_what_comes_while_a_request_is_watched_is_answered_after_it(
    path: str,
) -> None:
    async def handler(request: Request) -> Response:
        await trio.sleep(PATIENCE_SECONDS * 3)
        return Response(200, request.path[0].encode() + b" ", "text/plain")

    async with serving(path, handler), await connect(path) as stream:
        for number in range(3):
            begin = trio.current_time()
            await stream.send_all(KEEP.replace(b"ping", b"a%d" % number))
            await trio.sleep(PATIENCE_SECONDS * 2)
            await stream.send_all(KEEP.replace(b"ping", b"b%d" % number))
            data = await read_until(stream, b"b%d " % number)
            assert b"a%d " % number in data
            assert trio.current_time() - begin == pytest.approx(PATIENCE_SECONDS * 6)


@pytest.mark.mock_clock
async def test_much_sent_ahead_of_a_held_request_is_not_read(path: str) -> None:
    async def handler(_: Request) -> Response:
        await trio.sleep_forever()
        raise AssertionError

    async with serving(path, handler), await connect(path) as stream:
        with trio.move_on_after(5) as full:
            while True:
                await stream.send_all(KEEP * 1000)
        assert full.cancelled_caught


async def test_stop_ends_idle_connections_and_lets_requests_finish(path: str) -> None:
    entered, finish = trio.Event(), trio.Event()

    async def handler(request: Request) -> Response:
        if request.path == ("held",):
            entered.set()
            await finish.wait()
        return Response(200, b"done ", "text/plain")

    server = Server(handler)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, [unix_listener(path)])
        idle, busy = await connect(path), await connect(path)
        await idle.send_all(KEEP)
        await read_until(idle, b"done ")
        await busy.send_all(encode_request("GET", "/held"))
        await entered.wait()
        server.stop()
        assert await idle.receive_some() == b""
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(OSError):
            await connect(path)
        finish.set()
        assert (await read_all(busy)).endswith(b"done ")
        await idle.aclose()
        await busy.aclose()


@pytest.mark.mock_clock
async def test_stop_gives_held_requests_a_moment_and_no_more(path: str) -> None:
    server = Server(flooding)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, [unix_listener(path)])
        stream = await connect(path)
        await stream.send_all(PING)
        await trio.testing.wait_all_tasks_blocked()
        begin = trio.current_time()
        server.stop()
    assert trio.current_time() - begin == pytest.approx(server.limits.drain)
    await stream.aclose()


# The socket file


async def test_the_socket_is_ours_alone(path: str) -> None:
    async with serving(path):
        assert os.stat(path).st_mode & 0o777 == 0o600


async def test_a_stale_socket_is_replaced(path: str) -> None:
    left_behind = socket.socket(socket.AF_UNIX)
    left_behind.bind(path)
    left_behind.close()
    async with serving(path):
        assert (await ask(path, PING))[0] == 200


async def test_a_socket_in_use_is_not_touched(path: str) -> None:
    async with serving(path):
        with pytest.raises(Refused, match="another process"):
            unix_listener(path)
        assert (await ask(path, PING))[0] == 200


def test_a_file_in_the_way_is_not_touched(tmp_path: Path) -> None:
    place = tmp_path / "s"
    place.write_text("precious")
    with pytest.raises(Refused, match="no socket"):
        unix_listener(place)
    assert place.read_text() == "precious"


# Anything at all

_VALID = encode_request("POST", "/ping?a=b", b"0123456789")
_MUTATED = st.lists(
    st.tuples(st.integers(0, len(_VALID) - 1), st.integers(0, 255)), max_size=4
).map(
    lambda changes: functools.reduce(
        lambda raw, change: (
            raw[: change[0]] + bytes([change[1]]) + raw[change[0] + 1 :]
        ),
        changes,
        _VALID,
    )
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.binary(max_size=200) | _MUTATED, min_size=1, max_size=5))
async def test_the_server_survives_any_bytes(pieces: Sequence[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/s"
        async with serving(path) as server:
            async with await connect(path) as stream:
                try:
                    for piece in pieces:
                        await stream.send_all(piece)
                except trio.BrokenResourceError:
                    pass
            assert await ask(path, _VALID) == (200, b"pong 0123456789")
            await trio.testing.wait_all_tasks_blocked()
            assert server.connections == 0
