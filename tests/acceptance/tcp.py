"""A service over TCP as its clients see it, honest ones and others."""

from __future__ import annotations

import http.client
import json
import socket
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tests.acceptance.service import LiveService

SETTINGS = "[gateway]\nport = 0\n"
SECONDS = 20.0


class Answered(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)


class Tcp:
    """Where a service is, and its token."""

    def __init__(self, service: LiveService) -> None:
        endpoint: str = service.json("status")["service"]["endpoint"]
        self.endpoint = endpoint
        self.port = int(endpoint.rpartition(":")[2])
        self.host = f"127.0.0.1:{self.port}"
        self.token = (service.home / "api-token").read_text().strip()
        self.bearer = {"authorization": f"Bearer {self.token}"}

    def ask(
        self, method: str, target: str, body: object = None, **headers: str
    ) -> Answered:
        """An honest request, with the token."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body)
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        connection = http.client.HTTPConnection(self.host, timeout=SECONDS)
        try:
            connection.request(method, target, data, {**self.bearer, **named})
            answer = connection.getresponse()
            told = {name.lower(): text for name, text in answer.getheaders()}
            return Answered(answer.status, told, answer.read())
        finally:
            connection.close()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)

    def head(self, *lines: str, host: str | None = None) -> bytes:
        """The head of a request, which may be a strange one."""
        first, *rest = lines
        named = [first, f"host: {host or self.host}", *rest]
        return "\r\n".join([*named, "", ""]).encode("latin-1")

    def raw(self, data: bytes) -> int | None:
        """The status that is answered to these bytes, or None: it hung up."""
        with self.connect() as connection:
            connection.sendall(data)
            return status_of(connection)


def status_of(connection: socket.socket) -> int | None:
    """The status of the answer that comes, however much of it."""
    found = b""
    try:
        while len(found) < 12 and (piece := connection.recv(4096)):
            found += piece
    except ConnectionResetError:
        pass
    return int(found[9:12]) if found.startswith(b"HTTP/1.1 ") else None
