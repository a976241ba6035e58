"""What the HTTP server and its handler say to each other, and the server's limits."""

from __future__ import annotations

import itertools
import math
import re
import secrets
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Literal, Protocol, TypeAlias
from urllib.parse import quote

import msgspec
from msgspec import Struct, structs

JSON = "application/json"
#: An error, as RFC 9457 has it.
PROBLEM = "application/problem+json"
JSON_LINES = "application/x-ndjson"
BYTES = "application/octet-stream"

#: Sends one piece of a streamed body; raises an OSError once the client is gone.
Send: TypeAlias = Callable[[bytes], Awaitable[None]]


#: Seconds after which somebody who was turned away may try again.
RETRY_AFTER = 1


class Limits(Struct, frozen=True):
    """How much of the server one client may hold, and for how long.

    Sizes are bytes, times are seconds. A whole head, a whole body and each piece that
    is written have their limit, so that no trickle of bytes keeps a connection alive.
    """

    head_bytes: int = 16 * 1024
    body_bytes: int = 64 * 1024 * 1024
    #: The same for a batch of jobs.
    batch_bytes: int = 64 * 1024 * 1024
    head_timeout: float = 10.0
    idle_timeout: float = 30.0
    body_timeout: float = 60.0
    write_timeout: float = 15.0
    #: Requests held open until something happens. The places that are left of
    #: `connections` are for all the others, however many wait.
    held: int = 256
    connections: int = 384
    #: How long requests in hand may still run once the server was told to stop.
    drain: float = 1.0


class Asker(Struct, frozen=True):
    """Who sent a request: the owner of the service over its socket, a program with its
    token, a page of a browser that was let in, or nobody we know.

    `id` tells them apart, and may be shown. `until` is when, by trio's clock, whoever
    it is has to be let in again.
    """

    kind: Literal["socket", "token", "page", "nobody"]
    id: str
    until: float = math.inf


OWNER = Asker("socket", "owner")
NOBODY = Asker("nobody", "nobody")


class Request(Struct, frozen=True):
    """One request, its body complete. Header names are in lower case."""

    method: str
    #: The parts of the path between its slashes, each decoded.
    path: tuple[str, ...]
    query: str
    headers: dict[str, str]
    body: bytes = b""
    asker: Asker = OWNER
    #: What its client called it, or we did.
    id: str = ""

    def __str__(self) -> str:
        """On one line, whatever it is: for the log."""
        path = "/".join(quote(part, safe="") for part in self.path)
        return f"{self.method} /{path} (request {self.id})"


class Response(Struct, frozen=True):
    """An answer that is known whole."""

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: dict[str, str] = {}


class Stream(Struct, frozen=True):
    """A 200 answer whose body is sent piece by piece while it comes into being.

    An exception of `produce` cuts the connection, so that no client takes a part of
    the body for the whole of it.
    """

    produce: Callable[[Send], Awaitable[None]]
    content_type: str = BYTES
    headers: dict[str, str] = {}
    #: It goes on for as long as its client listens, and takes no place of a connection:
    #: whoever answers it counts how many there are.
    lasting: bool = False


class Reply(Protocol):
    """How a `Live` answer is given: whole, or its head and then piece by piece.

    Once the client is gone each of these is cancelled, and with it the answer.
    """

    async def whole(self, answer: Response) -> None: ...

    async def begin(self, head: Response) -> None:
        """Send the head of an answer; its body has to be empty."""

    async def send(self, data: bytes) -> None: ...


class Live(Struct, frozen=True):
    """An answer of which not even the status is known before it comes into being.

    An exception of `run` is answered with 500, or cuts what was begun.
    """

    run: Callable[[Reply], Awaitable[None]]


Handler: TypeAlias = Callable[[Request], Awaitable[Response | Stream | Live]]


def json_response(value: object, *, status: int = 200) -> Response:
    return Response(status, msgspec.json.encode(value) + b"\n")


def error_response(
    status: int,
    code: str,
    message: str,
    *,
    details: dict[str, object] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """The one form of every error: problem details, with our stable `code`.

    The id of the request is added to them when they are sent.
    """
    body = {
        "type": f"urn:forge-actors:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": message,
        "code": code,
        **(details or {}),
    }
    return Response(
        status, msgspec.json.encode(body) + b"\n", PROBLEM, headers=headers or {}
    )


def with_request_id(answer: Response, request_id: str) -> Response:
    """An error that says which request it answers."""
    if answer.content_type != PROBLEM:
        return answer
    body = {**msgspec.json.decode(answer.body), "request_id": request_id}
    return structs.replace(answer, body=msgspec.json.encode(body) + b"\n")


_SANE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=-]{0,127}")
_OURS = secrets.token_hex(4)
_numbers = itertools.count(1)


def request_id(headers: dict[str, str]) -> str:
    """What a client calls its request, where that is fit to be shown; or a new id."""
    given = headers.get("x-request-id")
    if given is not None and _SANE_ID.fullmatch(given):
        return given
    return f"{_OURS}-{next(_numbers):08x}"
