"""One client of the HTTP server, from accept to close.

No write is shielded, so a cancel always wins, whatever a client does not read. Beside
each handler a task reads on: a client that goes away cancels its handler at once. An
end of file counts as going away; a half-closed connection gets no answer.
"""

from __future__ import annotations

import logging
import os
from email.utils import formatdate
from typing import TYPE_CHECKING
from urllib.parse import unquote

import h11
import trio
from msgspec import Struct

from forge_actors.edges.gateway.listeners import peer_uid
from forge_actors.edges.gateway.messages import (
    Limits,
    Request,
    Response,
    Stream,
    error_response,
)

if TYPE_CHECKING:
    from forge_actors.edges.gateway.messages import Handler

log = logging.getLogger(__name__)

READ_BYTES = 64 * 1024
WRITE_BYTES = 256 * 1024
#: After a refusal we read on for so long and so much: closing on unread bytes would
#: reset the connection, and the client would lose our answer.
LINGER_SECONDS = 1.0
LINGER_BYTES = 1024 * 1024
CODES = {
    400: "BAD_REQUEST",
    403: "FORBIDDEN",
    408: "TIMEOUT",
    413: "TOO_LARGE",
    431: "TOO_LARGE",
    501: "NOT_IMPLEMENTED",
    503: "BUSY",
}


class _Refusal(Exception):
    """The client broke a rule of the protocol or of ours; answer, then close."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    def response(self) -> Response:
        return error_response(
            self.status,
            CODES[self.status],
            str(self),
            headers={"connection": "close"},
        )


class ClientGone(OSError):
    """The client went away, or was too slow to take what it had asked for."""


class Rules(Struct, frozen=True):
    """What every connection of one server follows."""

    handler: Handler
    limits: Limits
    hosts: frozenset[str]
    stopping: trio.Event


class Connection:
    """One client. `run` or `turn_away` is called once, and closes the stream."""

    def __init__(self, rules: Rules, stream: trio.SocketStream) -> None:
        self._rules = rules
        self._limits = rules.limits
        self._stream = stream
        self._http = h11.Connection(
            h11.SERVER, max_incomplete_event_size=self._limits.head_bytes
        )
        self._served = 0
        self._gone = False

    @property
    def idle(self) -> bool:
        """Between two requests, with no byte of the next one here."""
        return self._http.our_state is h11.IDLE and not self._http.trailing_data[0]

    async def turn_away(self) -> None:
        """Say at once that there is no room. No connection is parked."""
        async with self._stream:
            with trio.move_on_after(LINGER_SECONDS):
                await self._refuse(_Refusal(503, "too many connections"))

    async def run(self) -> None:
        async with self._stream:
            try:
                self._check_peer()
                while (request := await self._request()) is not None:
                    await self._answer(request)
                    self._served += 1
                    if self._gone or self._http.our_state is not h11.DONE:
                        return
                    self._http.start_next_cycle()
                    if self._rules.stopping.is_set():
                        return
            except _Refusal as refusal:
                await self._refuse(refusal)
                await self._linger()
            except ClientGone:
                return

    # Reading

    async def _request(self) -> Request | None:
        """The next request, complete and allowed; None when the client has no more."""
        head = await self._head()
        if head is None:
            return None
        headers = {
            name.decode("ascii"): value.decode("latin-1")
            for name, value in head.headers
        }
        self._check_head(head, headers)
        body = await self._body(headers)
        raw_path, _, query = head.target.decode("ascii").partition("?")
        return Request(
            method=head.method.decode("ascii"),
            path=tuple(unquote(part) for part in raw_path.split("/") if part),
            query=query,
            headers=headers,
            body=body,
        )

    async def _head(self) -> h11.Request | None:
        limits = self._limits
        patience = limits.idle_timeout if self._served else limits.head_timeout
        deadline = trio.current_time() + patience
        began = False
        while (event := self._next_event()) is h11.NEED_DATA:
            if not began and self._http.trailing_data[0]:
                began = True
                deadline = trio.current_time() + limits.head_timeout
            with trio.move_on_at(deadline) as waiting:
                await self._read()
            if waiting.cancelled_caught:
                if began:
                    raise _Refusal(408, "the head of the request took too long")
                return None
        return event if isinstance(event, h11.Request) else None

    def _check_peer(self) -> None:
        uid = peer_uid(self._stream)
        if uid is not None and uid != os.geteuid():
            raise _Refusal(403, "this service belongs to another user")

    def _check_head(self, head: h11.Request, headers: dict[str, str]) -> None:
        # h11 counts only what is incomplete, so a head that came at once passes it.
        size = len(head.target) + sum(
            len(name) + len(value) for name, value in head.headers
        )
        if size > self._limits.head_bytes:
            raise _Refusal(431, "the head of the request is too large")
        # A page of a browser must not reach us, by whatever name it resolved us.
        if headers.get("host") not in self._rules.hosts:
            raise _Refusal(403, "the Host header names no host of this service")
        if "origin" in headers:
            raise _Refusal(403, "requests of web pages are not accepted")
        if "content-length" in headers and "transfer-encoding" in headers:
            raise _Refusal(400, "a body has one length, not two")
        if int(headers.get("content-length", "0")) > self._limits.body_bytes:
            raise _Refusal(413, "the body of the request is too large")

    async def _body(self, headers: dict[str, str]) -> bytes:
        parts: list[bytes] = []
        size = 0
        with trio.move_on_after(self._limits.body_timeout) as waiting:
            while not isinstance(event := self._next_event(), h11.EndOfMessage):
                if isinstance(event, h11.Data):
                    size += len(event.data)
                    if size > self._limits.body_bytes:
                        raise _Refusal(413, "the body of the request is too large")
                    parts.append(bytes(event.data))
                elif event is not h11.NEED_DATA:
                    raise ClientGone
                else:
                    if self._http.they_are_waiting_for_100_continue:
                        go_on = h11.InformationalResponse(status_code=100, headers=[])
                        await self._write(self._http.send(go_on))
                    await self._read()
        if waiting.cancelled_caught:
            raise _Refusal(408, "the body of the request took too long")
        return b"".join(parts)

    def _next_event(self) -> h11.Event | type[h11.NEED_DATA | h11.PAUSED]:
        try:
            return self._http.next_event()
        except h11.RemoteProtocolError as error:
            raise _Refusal(error.error_status_hint or 400, str(error)) from None

    async def _read(self) -> None:
        try:
            data = await self._stream.receive_some(READ_BYTES)
        except trio.BrokenResourceError:
            raise ClientGone from None
        self._http.receive_data(data)
        self._gone = not data

    async def _watch(self, handler: trio.CancelScope) -> None:
        """Read on while a request is handled; cancel it when its client goes away."""
        try:
            while not self._gone:
                if len(self._http.trailing_data[0]) > self._limits.head_bytes:
                    return  # enough requests sent ahead: let the socket's buffer fill
                await self._read()
        except ClientGone:
            self._gone = True
        handler.cancel()

    # Writing

    async def _answer(self, request: Request) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, nursery.cancel_scope)
            try:
                await self._respond(request)
            except ClientGone:
                self._gone = True
            nursery.cancel_scope.cancel()

    async def _respond(self, request: Request) -> None:
        try:
            answer = await self._rules.handler(request)
        except Exception:
            log.exception("%s /%s failed", request.method, "/".join(request.path))
            answer = error_response(
                500, "INTERNAL", "the service failed; its log has the details"
            )
        if isinstance(answer, Response):
            await self._write(self._encode(answer, with_body=request.method != "HEAD"))
            return
        await self._write(self._http.send(self._encode_head(200, answer, None)))
        if request.method != "HEAD":
            try:
                await answer.produce(self._send_piece)
            except ClientGone:
                raise
            except Exception:
                log.exception("the answer to /%s broke off", "/".join(request.path))
                raise ClientGone from None
        await self._write(self._http.send(h11.EndOfMessage()))

    async def _send_piece(self, data: bytes) -> None:
        await self._write(self._http.send(h11.Data(data=data)))

    def _encode(self, answer: Response, *, with_body: bool = True) -> bytes:
        head = self._encode_head(answer.status, answer, len(answer.body))
        out = self._http.send(head) or b""
        if with_body and answer.body:
            out += self._http.send(h11.Data(data=answer.body)) or b""
        return out + (self._http.send(h11.EndOfMessage()) or b"")

    def _encode_head(
        self, status: int, answer: Response | Stream, length: int | None
    ) -> h11.Response:
        headers = [
            ("date", formatdate(usegmt=True)),
            ("content-type", answer.content_type),
            *answer.headers.items(),
        ]
        if length is not None:
            headers.append(("content-length", str(length)))
        if self._rules.stopping.is_set():
            headers.append(("connection", "close"))
        return h11.Response(status_code=status, headers=headers)

    async def _write(self, data: bytes | None) -> None:
        view = memoryview(data or b"")
        try:
            for start in range(0, len(view), WRITE_BYTES):
                with trio.fail_after(self._limits.write_timeout):
                    await self._stream.send_all(view[start : start + WRITE_BYTES])
        except (
            trio.BrokenResourceError,
            trio.ClosedResourceError,
            trio.TooSlowError,
        ):
            raise ClientGone from None

    async def _refuse(self, refusal: _Refusal) -> None:
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        try:
            await self._write(self._encode(refusal.response()))
        except ClientGone:
            self._gone = True

    async def _linger(self) -> None:
        if self._gone:
            return
        taken = 0
        try:
            await self._stream.send_eof()
            with trio.move_on_after(LINGER_SECONDS):
                while taken < LINGER_BYTES:
                    data = await self._stream.receive_some(READ_BYTES)
                    if not data:
                        return
                    taken += len(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return
