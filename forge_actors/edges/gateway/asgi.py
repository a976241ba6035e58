"""An ASGI application behind our own server: requests whole, answers as they come.

A client that leaves cancels the application; it is not told, as it is gone by then.
There is no lifespan: whoever has the application starts and stops what it needs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

import trio

from forge_actors.edges.gateway.messages import JSON, Live, Response

if TYPE_CHECKING:
    from forge_actors.edges.gateway.messages import Handler, Reply, Request

Message: TypeAlias = MutableMapping[str, Any]
Application: TypeAlias = Callable[
    [
        MutableMapping[str, Any],
        Callable[[], Awaitable[Message]],
        Callable[[Message], Awaitable[None]],
    ],
    Awaitable[None],
]

#: Headers that say how an answer is framed, which is ours to say, or are told apart.
_OURS = frozenset(
    b"connection content-length content-type date keep-alive transfer-encoding"
    b" upgrade".split()
)


def asgi_handler(app: Application) -> Handler:
    """The handler that lets `app` answer."""

    async def handle(request: Request) -> Live:
        async def run(reply: Reply) -> None:
            exchange = _Exchange(request, reply)
            await app(scope_of(request), exchange.receive, exchange.send)
            exchange.check_complete()

        return Live(run)

    return handle


def scope_of(request: Request) -> dict[str, Any]:
    """What an application is told of a request."""
    path = "/" + "/".join(request.path)
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": path,
        "root_path": "",
        "query_string": request.query.encode("latin-1", "replace"),
        "headers": [
            (name.encode("latin-1"), value.encode("latin-1"))
            for name, value in request.headers.items()
        ],
        "client": None,
        "server": None,
    }


class _Exchange:
    """One request on its way to an application, and the answer on its way back."""

    def __init__(self, request: Request, reply: Reply) -> None:
        self._body: bytes | None = request.body
        self._reply = reply
        self._head: Response | None = None
        self._begun = False
        self._complete = trio.Event()

    async def receive(self) -> Message:
        await trio.lowlevel.checkpoint()
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        # If the client leaves before that, the application is cancelled here.
        await self._complete.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._head = _head(message)
            if not _tells_its_length(message):
                # Its first piece may be a long time off, and the client waits for this.
                await self._send_piece(b"")
            return
        if self._head is None or self._complete.is_set():
            raise RuntimeError("an answer has one head, and then a body")
        body, more = bytes(message.get("body", b"")), message.get("more_body", False)
        if more or self._begun:
            await self._send_piece(body)
        else:
            head = self._head
            whole = Response(head.status, body, head.content_type, head.headers)
            await self._reply.whole(whole)
        if not more:
            # Only now: many an application ends itself when it hears of that.
            self._complete.set()

    async def _send_piece(self, body: bytes) -> None:
        assert self._head is not None, "the head comes first"
        if not self._begun:
            self._begun = True
            await self._reply.begin(self._head)
        if body:
            await self._reply.send(body)

    def check_complete(self) -> None:
        if not self._complete.is_set():
            raise RuntimeError("the application ended in the middle of its answer")


def _tells_its_length(message: Message) -> bool:
    names = (bytes(name).lower() for name, _ in message.get("headers", ()))
    return b"content-length" in names


def _head(message: Message) -> Response:
    headers: dict[str, str] = {}
    content_type = JSON
    for raw_name, raw_value in message.get("headers", ()):
        name, value = bytes(raw_name).lower(), bytes(raw_value)
        if b"\r" in value or b"\n" in value:
            raise RuntimeError("a header of the answer has more than one line")
        if name == b"content-type":
            content_type = value.decode("latin-1")
        elif name not in _OURS:
            headers[name.decode("latin-1")] = value.decode("latin-1")
    return Response(message["status"], b"", content_type, headers)
