"""The client's half of HTTP: any framing, in pieces of any size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.client.wire import ResponseReader, WireError, encode_request

if TYPE_CHECKING:
    from collections.abc import Sequence

PIECES = st.lists(st.binary(max_size=50), max_size=6)


def framed(pieces: Sequence[bytes], headers: list[tuple[str, str]]) -> bytes:
    """What h11, which is not ours, makes of this body."""
    server = h11.Connection(h11.SERVER)
    server.receive_data(encode_request("GET", "/"))
    server.next_event()
    raw = server.send(h11.Response(status_code=200, headers=headers)) or b""
    for piece in pieces:
        raw += server.send(h11.Data(data=piece)) or b""
    return raw + (server.send(h11.EndOfMessage()) or b"")


@given(PIECES, st.booleans(), st.integers(1, 40))
def test_a_body_survives_every_framing_and_every_cut(
    pieces: list[bytes], chunked: bool, size: int
) -> None:
    whole = b"".join(pieces)
    headers = [] if chunked else [("content-length", str(len(whole)))]
    raw = framed(pieces, headers)
    reader = ResponseReader()
    cuts = [raw[start : start + size] for start in range(0, len(raw), size)]
    body = b"".join([reader.feed(cut) for cut in cuts])
    assert (reader.status, body, reader.complete) == (200, whole, True)


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_garbage_is_a_wire_error_or_an_answer(pieces: list[bytes]) -> None:
    reader = ResponseReader()
    try:
        for piece in [b"HTTP/1.1 200 OK\r\n", *pieces]:
            reader.feed(piece)
        reader.end()
    except WireError:
        pass


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    reader = ResponseReader()
    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\nabc") == b"abc"
    assert not reader.complete
    reader.end()
    assert reader.complete


def test_an_interim_answer_is_passed_over() -> None:
    reader = ResponseReader()
    raw = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"
    assert reader.feed(raw) == b""
    assert (reader.status, reader.complete) == (204, True)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n",
    ],
)
def test_a_broken_off_answer_is_no_answer(raw: bytes) -> None:
    reader = ResponseReader()
    reader.feed(raw)
    with pytest.raises(WireError):
        reader.end()


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc",
        b"x" * 70_000,
    ],
)
def test_what_is_no_http_is_said_to_be_none(raw: bytes) -> None:
    with pytest.raises(WireError):
        ResponseReader().feed(raw)
