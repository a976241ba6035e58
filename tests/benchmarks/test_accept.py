"""The callers of the acceptance benchmark look at every answer."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from benchmarks import accept
from benchmarks.wire import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

ACCEPTED = (
    b"HTTP/1.1 201 \r\ndate: today\r\ncontent-type: application/json\r\n"
    b'content-length: 15\r\n\r\n{"jobs": ["x"]}'
)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(accept, "connect", lambda path: theirs)
    with ours, theirs:
        yield ours


def test_a_whole_answer_counts_however_it_arrives(service: socket.socket) -> None:
    caller = accept.Caller("path", "app", 2)
    for pieces in ([ACCEPTED], [ACCEPTED[:9], ACCEPTED[9:-5], ACCEPTED[-5:]]):
        caller.begin()
        assert service.recv(65536).startswith(b"POST /v1/jobs HTTP/1.1\r\n")
        taken = []
        for piece in pieces:
            service.sendall(piece)
            taken.append(caller.take())
        assert taken == [False] * (len(pieces) - 1) + [True]
    assert caller.left == 0


@pytest.mark.parametrize("status", [b"200", b"409", b"503"])
def test_any_other_answer_fails_the_row(service: socket.socket, status: bytes) -> None:
    caller = accept.Caller("path", "app", 1)
    service.sendall(ACCEPTED.replace(b"201", status))
    with pytest.raises(Refusal, match=status.decode()):
        caller.take()


def test_a_closed_connection_fails_the_row(service: socket.socket) -> None:
    caller = accept.Caller("path", "app", 1)
    service.close()
    with pytest.raises(Refusal, match="closed"):
        caller.take()
