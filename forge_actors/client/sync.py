"""A client for programs that wait: one request a connection, over the service's socket.

Standard library only, because the command line pays for every import on each call.
Every method may raise what the service answers with, or Unavailable.
"""

from __future__ import annotations

import contextlib
import json
import socket
from typing import TYPE_CHECKING, Any

from forge_actors.client.errors import broke_off, from_answer, not_reached
from forge_actors.client.home import own_job, own_trace, resolve_home, socket_path
from forge_actors.client.wire import ResponseReader, WireError, encode_request

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    #: Names and values; a value that is None is left out.
    Parameters = Iterable[tuple[str, str | int | None]]

READ_BYTES = 256 * 1024
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Service:
    """The service of one home. Holds nothing open between two calls."""

    def __init__(self, home: str | None = None) -> None:
        self.home = resolve_home(home)
        self._job = own_job(self.home)

    def get(self, *path: str, query: Parameters = ()) -> Any:
        """The decoded JSON that a GET of this path answers."""
        return self.request("GET", path, query=query)

    def post(self, *path: str, body: object = None, query: Parameters = ()) -> Any:
        return self.request("POST", path, body=_encode(body), query=query)

    def post_bytes(self, *path: str, body: bytes, query: Parameters = ()) -> Any:
        return self.request("POST", path, body=body, query=query)

    def delete(self, *path: str, query: Parameters = ()) -> Any:
        return self.request("DELETE", path, query=query)

    def request(
        self,
        method: str,
        path: tuple[str, ...],
        *,
        body: bytes | None = None,
        query: Parameters = (),
    ) -> Any:
        answer = b"".join(self.stream(method, path, body=body, query=query))
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            raise broke_off(self.home) from None

    def stream(
        self,
        method: str,
        path: tuple[str, ...],
        *,
        body: bytes | None = None,
        query: Parameters = (),
    ) -> Iterator[bytes]:
        """The body of an answer, piece by piece as it arrives."""
        with self._connect() as connection:
            at, trace = target(path, query), own_trace()
            request = encode_request(method, at, body, job=self._job, trace=trace)
            # A service that refuses a body answers before it has read all of it, so
            # what cannot be sent any more is no reason not to read.
            with contextlib.suppress(OSError):
                connection.sendall(request)
            reader = ResponseReader()
            refusal: list[bytes] = []
            for piece in self._pieces(connection, reader, method):
                if reader.status is not None and reader.status >= 400:
                    refusal.append(piece)
                elif piece:
                    yield piece
            if reader.status is not None and reader.status >= 400:
                raise from_answer(reader.status, b"".join(refusal))

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(socket_path(self.home))
        except OSError:
            connection.close()
            raise not_reached(self.home) from None
        except BaseException:
            connection.close()
            raise
        return connection

    def _pieces(
        self, connection: socket.socket, reader: ResponseReader, method: str
    ) -> Iterator[bytes]:
        unheard = method == "GET"
        try:
            while not reader.complete:
                data = connection.recv(READ_BYTES)
                unheard = unheard and not data
                yield reader.feed(data)
                if not data:
                    reader.end()
        except (OSError, WireError):
            raise broke_off(self.home, unheard=unheard) from None


def target(path: Iterable[str], query: Parameters = ()) -> str:
    """The target of a request: parts and values with every odd byte escaped."""
    parts = "".join(f"/{_quote(part)}" for part in ("v1", *path))
    pairs = "&".join(
        f"{name}={_quote(str(value))}" for name, value in query if value is not None
    )
    return f"{parts}?{pairs}" if pairs else parts


def _quote(text: str) -> str:
    # urllib.parse.quote would do; its import costs a fifth of a client's start.
    raw = text.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in raw)


def _encode(body: object) -> bytes:
    return json.dumps({} if body is None else body).encode("ascii")
