"""HTTP over the service's socket, lean: it is the service that is measured."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType


class Refusal(Exception):
    """The service answered with an error."""


def request(method: str, path: str, body: object = None) -> bytes:
    """The bytes of one request."""
    payload = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
    )
    return head.encode() + payload


class Answer:
    """Collects one response from what was read; responses have a length."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._body_at = 0
        self._end: int | None = None
        self.status = 0
        self.closes = False

    def feed(self, data: bytes) -> bool:
        """Take what was read; True when the response is whole.

        Raises:
            Refusal: the connection ended first, or the response has no length.
        """
        if not data:
            raise Refusal("the service closed the connection before it answered")
        self._data += data
        if self._end is None:
            split = self._data.find(b"\r\n\r\n")
            if split < 0:
                return False
            self._read_head(bytes(self._data[:split]))
            self._body_at = split + 4
        assert self._end is not None
        return len(self._data) - self._body_at >= self._end

    def _read_head(self, head: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split()[1])
        for line in lines:
            name, _, value = line.partition(":")
            if name.lower() == "content-length":
                self._end = int(value)
            elif name.lower() == "connection":
                self.closes = value.strip().lower() == "close"
        if self._end is None:
            raise Refusal(f"the service answered without a length: {first}")

    def result(self) -> Any:
        """The decoded body.

        Raises:
            Refusal: the status is that of an error.
        """
        body = bytes(self._data[self._body_at :])
        if self.status >= 400:
            raise Refusal(f"{self.status}: {body.decode(errors='replace')[:500]}")
        return json.loads(body) if body else None


class Client:
    """One connection to the service, kept open; it leaves decoding to its user."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def send(self, data: bytes) -> Answer:
        """Send a request, and wait for the whole response without decoding it."""
        line = self._connected()
        line.sendall(data)
        answer = Answer()
        while not answer.feed(line.recv(1 << 20)):
            pass
        if answer.closes:
            self.close()
        return answer

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._socket = connect(self._path)
        return self._socket


def connect(path: str) -> socket.socket:
    line = socket.socket(socket.AF_UNIX)
    try:
        line.connect(path)
    except OSError:
        line.close()
        raise
    return line
