"""One client of the HTTP server, from accept to close.

No write is shielded, so a cancel always wins, whatever a client does not read. Beside a
handler that takes its time a task reads on (see `lookout`): a client that goes away
cancels its handler. An end of file counts as going away; a half-closed connection gets
no answer.
"""

from __future__ import annotations

import logging
import math
import os
from typing import TYPE_CHECKING

import h11
import trio
from msgspec import structs

from forge_actors.edges.gateway.exchange import Exchange, H11Exchange, PlainExchange
from forge_actors.edges.gateway.listeners import peer_uid
from forge_actors.edges.gateway.live import FAILED, LiveReply
from forge_actors.edges.gateway.messages import (
    OWNER,
    Live,
    Request,
    Response,
    error_response,
    request_id,
    with_request_id,
)
from forge_actors.edges.gateway.plain import make_request, read_plain
from forge_actors.edges.gateway.refusal import Refusal
from forge_actors.edges.gateway.rules import too_large

if TYPE_CHECKING:
    from forge_actors.edges.gateway.messages import Asker, Stream
    from forge_actors.edges.gateway.rules import Rules

log = logging.getLogger(__name__)

READ_BYTES = 64 * 1024
WRITE_BYTES = 256 * 1024
#: After a refusal we read on for so long and so much: closing on unread bytes would
#: reset the connection, and the client would lose our answer.
LINGER_SECONDS = 1.0
LINGER_BYTES = 1024 * 1024


class ClientGone(OSError):
    """The client went away, or was too slow to take what it had asked for."""


class Connection:
    """One client. `run` or `turn_away` is called once, and closes the stream."""

    def __init__(self, rules: Rules, stream: trio.SocketStream) -> None:
        self._rules = rules
        self._limits = rules.limits
        self._stream = stream
        self._fd = stream.socket.fileno()
        #: Cancelled, it ends the connection; `run` is called within it.
        self.scope = trio.CancelScope()
        #: What was read and belongs to no request yet.
        self._data = bytearray()
        #: The request that h11 reads or answers now.
        self._general: H11Exchange | None = None
        #: What the plain request is called that is read or answered now.
        self._plain_id = ""
        self._served = 0
        self._busy = False
        self._gone = False
        #: Who sent the last request that was read.
        self.asker = OWNER
        #: What is done for a page, as long as that is let in.
        self._for_page: trio.CancelScope | None = None
        self._begun = False
        self._writing = False
        self._watch: trio.CancelScope | None = None
        self._watch_ended = trio.Event()

    @property
    def idle(self) -> bool:
        """Between two requests, with no byte of the next one here."""
        return not self._busy and not self._data

    async def turn_away(self) -> None:
        """Say at once that there is no room. No connection is parked."""
        async with self._stream:
            with trio.move_on_after(LINGER_SECONDS):
                await self._refuse(Refusal(503, "there are too many connections"))

    async def run(self) -> None:
        async with self._stream:
            try:
                self._check_peer()
                while await self._serve():
                    self._served += 1
            except Refusal as refusal:
                await self._refuse(refusal)
                await self._linger()
            except ClientGone:
                return

    async def _serve(self) -> bool:
        """Answer the next request; whether another may follow."""
        if self._data:
            await trio.lowlevel.checkpoint()  # sent ahead: let others have their turn
        elif not await self._begins():
            return False
        self._busy = True
        exchange: Exchange
        plain = read_plain(self._data, self._rules.hosts, self._limits)
        if plain is not None:
            del self._data[: plain.size]
            request = plain.request
            self._plain_id = request.id
            exchange = PlainExchange(request.id, keeps=plain.keeps)
            if self._rules.gate is not None:
                request = structs.replace(request, asker=self._admit(request))
        else:
            exchange = self._general = H11Exchange(self._limits.head_bytes)
            general = await self._read_general(exchange)
            if general is None:
                return False
            request = general
        await self._answer(request, exchange)
        self._general = None
        self._plain_id = ""
        self._busy = False
        return exchange.keeps and not self._gone and not self._rules.stopping.is_set()

    # Reading

    async def _begins(self) -> bool:
        """Wait for the first bytes of a request; False if none comes in time."""
        limits = self._limits
        patience = limits.idle_timeout if self._served else limits.head_timeout
        # Nothing is lost by giving the whole connection up: no request has begun. A
        # scope of its own for each request would cost as much as reading it.
        self.scope.deadline = trio.current_time() + patience
        self._data += await self._receive()
        if self.scope.cancel_called:
            return False
        self.scope.deadline = math.inf
        return bool(self._data)

    async def _read_general(self, exchange: H11Exchange) -> Request | None:
        """A request of any kind, complete and allowed; None if the client left."""
        exchange.http.receive_data(bytes(self._data))
        self._data.clear()
        head = await self._head(exchange)
        if head is None:
            return None
        headers = {
            name.decode("ascii"): value.decode("latin-1")
            for name, value in head.headers
        }
        exchange.with_body = head.method != b"HEAD"
        exchange.request_id = request_id(headers)
        self._rules.check_head(head, headers)
        target = self._rules.target(head)
        request = make_request(head.method.decode("ascii"), target, headers)
        if request is None:
            raise Refusal(400, "the path of the request has parts that name nothing")
        # Before its body: a stranger is to send us none.
        asker = self._admit(request)
        body = await self._body(exchange, self._rules.body_limit(request))
        self._data += exchange.rest
        return structs.replace(request, body=body, asker=asker, id=exchange.request_id)

    def _admit(self, request: Request) -> Asker:
        self.asker = self._rules.asker(request)
        return self.asker

    async def _head(self, exchange: H11Exchange) -> h11.Request | None:
        with trio.move_on_after(self._limits.head_timeout) as waiting:
            while (event := self._next_event(exchange)) is h11.NEED_DATA:
                exchange.http.receive_data(await self._receive())
        if waiting.cancelled_caught:
            raise Refusal(408, "the head of the request took too long")
        return event if isinstance(event, h11.Request) else None

    def _check_peer(self) -> None:
        uid = peer_uid(self._stream)
        if uid is not None and uid != os.geteuid():
            raise Refusal(403, "this service belongs to another user")

    async def _body(self, exchange: H11Exchange, most: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        with trio.move_on_after(self._limits.body_timeout) as waiting:
            while not isinstance(event := self._next_event(exchange), h11.EndOfMessage):
                if isinstance(event, h11.Data):
                    size += len(event.data)
                    if size > most:
                        raise too_large(most)
                    parts.append(bytes(event.data))
                elif event is not h11.NEED_DATA:
                    raise ClientGone
                else:
                    if exchange.wants_continue:
                        await self._write(exchange.go_on())
                    exchange.http.receive_data(await self._receive())
        if waiting.cancelled_caught:
            raise Refusal(408, "the body of the request took too long")
        return b"".join(parts)

    def _next_event(
        self, exchange: H11Exchange
    ) -> h11.Event | type[h11.NEED_DATA | h11.PAUSED]:
        try:
            return exchange.http.next_event()
        except h11.RemoteProtocolError as error:
            raise Refusal(error.error_status_hint or 400, str(error)) from None

    async def _receive(self) -> bytes:
        """What there is to read, once there is something; no bytes at the end."""
        # The stream would try to read first, and find nothing nearly every time.
        await trio.lowlevel.wait_readable(self._fd)
        try:
            data = os.read(self._fd, READ_BYTES)
        except OSError:
            raise ClientGone from None
        self._gone = not data
        return data

    def watch(self, nursery: trio.Nursery) -> None:
        """Read on while a request is handled; end it when its client goes away."""
        self._watch, self._watch_ended = trio.CancelScope(), trio.Event()
        nursery.start_soon(self._read_on, self._watch, self._watch_ended)

    async def _read_on(self, scope: trio.CancelScope, ended: trio.Event) -> None:
        try:
            with scope:
                await trio.lowlevel.checkpoint_if_cancelled()
                while not self._gone:
                    if len(self._data) > self._limits.head_bytes:
                        return  # enough sent ahead: let the socket's buffer fill
                    self._data += await self._receive()
        except ClientGone:
            self._gone = True
        finally:
            ended.set()
        if self._gone:
            self.scope.cancel()

    async def _end_watch(self, watch: trio.CancelScope) -> None:
        # It may be about to read, and the number of a closed socket is used again. It
        # is cancelled, so it does not keep us: the shield needs no deadline.
        watch.cancel()
        with trio.CancelScope(shield=True):
            await self._watch_ended.wait()
        self._watch = None

    # Writing

    async def _answer(self, request: Request, exchange: Exchange) -> None:
        lookout, held = self._rules.lookout, self._rules.holds(request)
        if held and lookout.held >= self._limits.held:
            busy = Refusal(503, f"{lookout.held} requests are held already").response()
            last = self._rules.stopping.is_set()
            busy = with_request_id(busy, exchange.request_id)
            await self._write(exchange.whole(busy, last=last))
            return
        lookout.enter(self, held=held)
        try:
            if request.asker.kind == "page":
                await self._respond_to_page(request, exchange)
            else:
                await self._respond(request, exchange)
        finally:
            lookout.leave(self)
            if self._watch is not None:
                await self._end_watch(self._watch)

    def let_out(self) -> None:
        """Its page is let in no more: end what it is told, or waits for."""
        if self._for_page is not None:
            self._for_page.cancel()

    async def _respond_to_page(self, request: Request, exchange: Exchange) -> None:
        """The same, until the page is let in no more. What was begun ends in order."""
        self._begun = self._writing = False
        with trio.CancelScope(deadline=request.asker.until) as self._for_page:
            await self._respond(request, exchange)
        let_out, self._for_page = self._for_page.cancelled_caught, None
        if let_out:
            self._rules.lookout.lasting.discard(self)
            if self._writing:
                self._gone = True  # a part of an answer that ends here is none
            elif self._begun:
                await self._write(exchange.end())
            else:
                out = error_response(401, "UNAUTHORIZED", "this page is let in no more")
                answer = with_request_id(out, request.id)
                await self._write(exchange.whole(answer, last=True))

    async def _respond(self, request: Request, exchange: Exchange) -> None:
        try:
            answer = await self._rules.handler(request)
        except Exception:
            log.exception("%s failed", request)
            answer = error_response(500, "INTERNAL", FAILED)
        stopping, with_body = self._rules.stopping, request.method != "HEAD"
        if isinstance(answer, Response):
            answer = with_request_id(answer, request.id)
            await self._write(exchange.whole(answer, last=stopping.is_set()))
        elif isinstance(answer, Live):
            reply = LiveReply(
                exchange, self._write, self.scope, stopping, with_body=with_body
            )
            await reply.give(answer, request)
        else:
            self._begun = True
            await self._write(exchange.begin(answer, last=stopping.is_set()))
            if with_body:
                lasting = self._rules.lookout.lasting
                if answer.lasting:
                    lasting.add(self)  # if its client goes away, until it is closed
                await self._produce(answer, exchange, request)
                lasting.discard(self)
            await self._write(exchange.end())

    async def _produce(
        self, answer: Stream, exchange: Exchange, request: Request
    ) -> None:
        async def send(data: bytes) -> None:
            # A reader that keeps up never makes us wait: others have their turn here.
            await trio.lowlevel.checkpoint()
            await self._write(exchange.piece(data))

        try:
            await answer.produce(send)
        except ClientGone:
            raise
        except Exception:
            log.exception("the answer to %s broke off", request)
            raise ClientGone from None

    async def _write(self, data: bytes) -> None:
        try:
            # Nearly every answer fits into the socket's buffer.
            sent = os.write(self._fd, data)
        except BlockingIOError:
            sent = 0
        except OSError:
            raise ClientGone from None
        if sent == len(data):
            return
        view = memoryview(data)
        self._writing = True
        try:
            for start in range(sent, len(view), WRITE_BYTES):
                with trio.fail_after(self._limits.write_timeout):
                    await self._stream.send_all(view[start : start + WRITE_BYTES])
        except (
            trio.BrokenResourceError,
            trio.ClosedResourceError,
            trio.TooSlowError,
        ):
            raise ClientGone from None
        self._writing = False

    async def _refuse(self, refusal: Refusal) -> None:
        exchange = self._general or H11Exchange(self._limits.head_bytes)
        if not exchange.answerable:
            return
        exchange.request_id = exchange.request_id or self._plain_id or request_id({})
        answer = with_request_id(refusal.response(), exchange.request_id)
        try:
            await self._write(exchange.whole(answer, last=True))
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
