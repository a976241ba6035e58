"""A request means the same, and is answered by the same bytes, whoever reads it.

The server is asked twice, once as it is and once with h11 for every request.
"""

from __future__ import annotations

import re
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING
from unittest import mock

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from benchmarks.wire import request as benchmark_request
from forge_actors.client.wire import encode_request
from forge_actors.edges.gateway import connection
from forge_actors.edges.gateway.messages import Limits, Request, Response, Send, Stream
from forge_actors.edges.gateway.plain import read_plain
from tests.edges.http_kit import KEEP, connect, head, read_all, serving

if TYPE_CHECKING:
    from collections.abc import Sequence

LIMITS = Limits(head_bytes=600, body_bytes=100)
HOSTS = frozenset({"localhost"})
LAST = encode_request("GET", "/last")


async def mirror(request: Request) -> Response | Stream:
    """Answers with what was understood, in each form an answer can have."""
    shown = repr((request, request.body)).encode()
    match request.path:
        case ("stream", *_):

            async def pieces(send: Send) -> None:
                await send(shown)
                await send(b"")
                await send(b"\r\n0\r\n\r\n")

            return Stream(pieces, headers={"forge-offset": "0"})
        case ("fail", *_):
            raise ValueError
        case ("missing", *_):
            return Response(404, b"", headers={"allow": "GET"})
        case _:
            return Response(200, shown, "text/plain")


async def answers(pieces: Sequence[bytes]) -> bytes:
    """All that a server sends to these pieces and the last request, without dates."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/s"
        async with (
            serving(path, mirror, LIMITS) as server,
            await connect(path) as stream,
        ):
            with suppress(trio.BrokenResourceError):
                for piece in [*pieces, LAST]:
                    await stream.send_all(piece)
                    await trio.testing.wait_all_tasks_blocked()
            data = await read_all(stream)
            await trio.sleep(connection.LINGER_SECONDS * 2)
            assert server.connections == 0
    return re.sub(rb"\r\n(date|x-request-id): [^\r]*|[0-9a-f]{8}-[0-9a-f]+", b"", data)


FIRST = [
    "GET /a HTTP/1.1",
    "POST /a%2Fb//c?d=%20 HTTP/1.1",
    "DELETE /stream HTTP/1.1",
    "GET /fail HTTP/1.1",
    "GET /missing HTTP/1.1",
    "GET /a HTTP/1.0",
    "GET /stream HTTP/1.0",
    "GET /a HTTP/2",
    "GET  /a HTTP/1.1",
    "GET /\xe9 HTTP/1.1",
    "HEAD /a HTTP/1.1",
    "HEAD /stream HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "CONNECT /a HTTP/1.1",
    "get /a HTTP/1.1",
    "",
]
FIELDS = [
    "host: localhost",
    "origin: null",
    "expect: 100-continue",
    "transfer-encoding: chunked",
    "upgrade: h2c",
    "connection: close",
    "connection: Close",
    "connection: close, x",
    "Connection: keep-alive",
    "connection: upgrade",
    "content-length: 2",
    "content-length: 02",
    "content-length: 2, 2",
    "content-length: -1",
    "content-length: 101",
    "content-length: 9999999999999999999999",
    "content-length:",
    "X-y_Z:a \t b",
    "x: a\r\n b",
    "x: \xe9",
    "x: \x01",
    "x : y",
    "x:  y ",
    " x: y",
    "x y",
    "x:",
    "x: y\nz: y",
]
BODIES = ["", "ab", "2\r\nab\r\n0\r\n\r\n", "x" * 200]


def made(first: str, fields: Sequence[str], body: str) -> bytes:
    return "\r\n".join([first, *fields, "", body]).encode("latin-1", "replace")


async def compare(pieces: Sequence[bytes]) -> None:
    with mock.patch("forge_actors.edges.gateway.connection.log"):
        found = await answers(pieces)
        with mock.patch.object(connection, "read_plain", return_value=None):
            assert found == await answers(pieces)
    assert found.startswith(b"HTTP/1.1 ")


@pytest.mark.mock_clock
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("length", [[], ["content-length: 2"]])
async def test_one_thing_out_of_the_ordinary_makes_no_difference(
    body: str, length: list[str]
) -> None:
    host = ["host: localhost", *length]
    for first in FIRST:
        await compare([made(first, host, body)])
    for field in FIELDS:
        await compare([made("GET /a HTTP/1.1", [*host, field], body)])
        await compare([made("POST /a HTTP/1.1", [field, *length], body)])


def mostly(ordinary: str, others: Sequence[str]) -> st.SearchStrategy[str]:
    return st.sampled_from([ordinary] * len(others) + list(others))


REQUESTS = st.builds(
    made,
    mostly("GET /a HTTP/1.1", FIRST),
    st.tuples(
        mostly("host: localhost", FIELDS), st.lists(st.sampled_from(FIELDS), max_size=2)
    ).map(lambda parts: [parts[0], *parts[1]]),
    mostly("", BODIES) | st.text(max_size=9),
)


@pytest.mark.mock_clock
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(REQUESTS | st.binary(max_size=50), min_size=1, max_size=4))
@example([KEEP * 3])
@example([KEEP[:9], KEEP[9:] + KEEP[:20], KEEP[20:]])
@example([head("GET /x HTTP/1.1", "host: localhost", "x: " + "y" * 560)])
@example([head("GET /x HTTP/1.1", "host: localhost", "x: " + "y" * 700)])
async def test_any_requests_are_answered_as_h11_would(pieces: Sequence[bytes]) -> None:
    await compare(pieces)


@pytest.mark.parametrize(
    "raw",
    [
        KEEP,
        encode_request("GET", "/v1/jobs?state=queued"),
        encode_request("POST", "/v1/jobs", b'{"jobs": []}'),
        benchmark_request("POST", "/v1/jobs", {"jobs": []}),
        head("GET / HTTP/1.1", "Host: localhost", "User-Agent: curl/8", "Accept: */*"),
    ],
)
def test_what_common_clients_send_is_plain(raw: bytes) -> None:
    plain = read_plain(bytearray(raw + b"more"), HOSTS, LIMITS)
    assert plain is not None
    assert plain.size == len(raw)
    assert plain.keeps == (b"close" not in raw)
    assert raw.endswith(b"\r\n\r\n" + plain.request.body)


@pytest.mark.parametrize(
    "raw",
    [
        KEEP[:-1],
        KEEP.replace(b"localhost", b"evil"),
        KEEP.replace(b"GET", b"HEAD"),
        KEEP.replace(b"1.1", b"1.0"),
        KEEP.replace(b"\r\n", b"\n"),
        head("GET / HTTP/1.1"),
        head("GET / HTTP/1.1", "host: localhost", "host: localhost"),
        head("GET / HTTP/1.1", "host: localhost", "origin: null"),
        head("GET / HTTP/1.1", "host: localhost", "expect: 100-continue"),
        head("GET / HTTP/1.1", "host: localhost", "upgrade: h2c"),
        head("GET / HTTP/1.1", "host: localhost", "connection: upgrade"),
        head("GET / HTTP/1.1", "host: localhost", "transfer-encoding: chunked"),
        head("GET / HTTP/1.1", "host: localhost", "x: " + "y" * 700),
        encode_request("POST", "/", b"x" * 101),
        encode_request("POST", "/", b"ab")[:-1],
    ],
)
def test_whatever_needs_more_thought_is_left_to_h11(raw: bytes) -> None:
    assert read_plain(bytearray(raw), HOSTS, LIMITS) is None
