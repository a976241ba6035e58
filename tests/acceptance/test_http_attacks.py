"""Clients over TCP that mean no good: others are answered meanwhile."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.machine import closes_to, descriptors
from tests.acceptance.tcp import SETTINGS, Tcp, status_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.acceptance.service import LiveService

PLACES = 40
SECRET_BYTES = 1 << 30
#: Bytes that a service may have grown by that was sent a lot of them.
GROWTH = 24 << 20


@pytest.fixture
def served(make_service: Callable[[str], LiveService]) -> LiveService:
    service = make_service(f"{SETTINGS}tcp_connections = {PLACES}\n")
    service.start()
    return service


@contextlib.contextmanager
def connected(tcp: Tcp, count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(tcp.connect()) for _ in range(count)]


def answers_its_owner(service: LiveService) -> bool:
    return service.json("status")["ready"] is True


def test_those_who_send_no_head_keep_nobody_out(served: LiveService) -> None:
    """As many as there are places send a byte now and then; the owner has others."""
    tcp = Tcp(served)
    before = descriptors(served.pid)
    with connected(tcp, PLACES) as slow:
        for connection in slow:
            connection.sendall(b"GET /v1/jobs HTTP/1.1\r\nx-")
        # There is no place, and that is said at once.
        with tcp.connect() as late:
            assert status_of(late) == 503
        assert answers_its_owner(served)
        for letter in (b"a", b"b", b"c"):
            for connection in slow:
                # On a slow machine its time may be over already.
                with contextlib.suppress(ConnectionError):
                    connection.sendall(letter)
            assert answers_its_owner(served)
        # They are not waited for: each is told that it took too long, or cut off.
        assert {status_of(connection) for connection in slow} - {None} == {408}
    # It has seen by then that they are gone.
    assert answers_its_owner(served)
    assert tcp.ask("GET", "/v1/jobs").status == 200
    assert closes_to(served.pid, before + 1)


def test_a_crowd_of_connections_is_turned_away_at_once(served: LiveService) -> None:
    tcp = Tcp(served)
    token = f"authorization: Bearer {tcp.token}"
    # A minute may pass until the rest of one of these is there.
    waiting = tcp.head("POST /v1/jobs HTTP/1.1", "content-length: 9", token)
    with connected(tcp, PLACES) as holders:
        for holder in holders:
            holder.sendall(waiting)
        for _ in range(10):
            with connected(tcp, 100) as crowd:
                assert {status_of(connection) for connection in crowd} == {503}
        assert answers_its_owner(served)
    assert answers_its_owner(served)
    assert tcp.ask("GET", "/v1/jobs").status == 200


def test_a_body_of_a_gigabyte_is_not_taken(served: LiveService) -> None:
    tcp = Tcp(served)
    token = f"authorization: Bearer {tcp.token}"
    before = _memory(served.pid)
    declared = f"content-length: {SECRET_BYTES}"
    for target in ("/v1/jobs", "/v1/batch", "/v1/nowhere"):
        first = f"POST {target} HTTP/1.1"
        for who, status in (([], 401), ([token], 413)):
            with tcp.connect() as connection:
                connection.sendall(tcp.head(first, declared, *who))
                _pour(connection, b"x" * 65_536)
                assert status_of(connection) in (status, None)
            # It is answered before a byte of the body is there.
            assert tcp.raw(tcp.head(first, declared, *who)) == status
    assert answers_its_owner(served)
    assert _memory(served.pid) - before < GROWTH


@pytest.mark.parametrize("known", [False, True])
def test_a_body_without_an_end_is_not_taken(served: LiveService, known: bool) -> None:
    tcp = Tcp(served)
    before = _memory(served.pid)
    who = [f"authorization: Bearer {tcp.token}"] if known else []
    chunked = tcp.head("POST /v1/jobs HTTP/1.1", "transfer-encoding: chunked", *who)
    with tcp.connect() as connection:
        connection.sendall(chunked)
        sent = _pour(connection, b"10000\r\n" + b"x" * 65_536 + b"\r\n")
        assert sent < SECRET_BYTES
        assert status_of(connection) in (413 if known else 401, None)
    assert answers_its_owner(served)
    assert _memory(served.pid) - before < GROWTH


def test_one_who_reads_nothing_holds_no_memory(served: LiveService) -> None:
    """Requests sent ahead whose answers nobody takes."""
    tcp = Tcp(served)
    before = _memory(served.pid)
    one = tcp.head(
        "GET /v1/openapi.json HTTP/1.1", f"authorization: Bearer {tcp.token}"
    )
    with tcp.connect() as connection:
        connection.settimeout(1)
        _pour(connection, one * 100)
        assert answers_its_owner(served)
        assert tcp.ask("GET", "/v1/jobs").status == 200
        assert _memory(served.pid) - before < GROWTH


def _pour(connection: socket.socket, piece: bytes) -> int:
    """Send this again and again, until nobody takes it any more; how much that was."""
    sent = 0
    with contextlib.suppress(ConnectionError, TimeoutError):
        while sent < SECRET_BYTES:
            connection.sendall(piece)
            sent += len(piece)
    return sent


def _memory(pid: int) -> int:
    """Bytes of memory that a process has of its own."""
    with open(f"/proc/{pid}/status", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    raise AssertionError("the system does not tell")
