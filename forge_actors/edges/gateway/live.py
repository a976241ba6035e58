"""How a `Live` answer is given to its client, by the connection that it is for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from forge_actors.edges.gateway.messages import (
    Response,
    error_response,
    with_request_id,
)

if TYPE_CHECKING:
    from forge_actors.edges.gateway.exchange import Exchange
    from forge_actors.edges.gateway.messages import Live, Request, Send

log = logging.getLogger(__name__)

FAILED = "the service failed; its log has the details"


class LiveReply:
    """A `Reply`: what it sends goes to `write`, which raises an OSError once the client
    is gone. Then `scope`, that of the whole connection, is cancelled."""

    def __init__(
        self,
        exchange: Exchange,
        write: Send,
        scope: trio.CancelScope,
        stopping: trio.Event,
        *,
        with_body: bool,
    ) -> None:
        self._exchange = exchange
        self._write = write
        self._scope = scope
        self._stopping = stopping
        self._with_body = with_body
        self._begun = False
        self._complete = False

    async def give(self, answer: Live, request: Request) -> None:
        """Let it come into being, and see to it that it ends well or not at all."""
        try:
            await answer.run(self)
            if not self._begun:
                raise RuntimeError("nothing was answered")
        except Exception:
            log.exception("%s failed", request)
            if self._begun:
                await self._cut()
            failure = error_response(500, "INTERNAL", FAILED)
            await self.whole(with_request_id(failure, request.id))
        if not self._complete:
            await self._send(self._exchange.end())

    async def whole(self, answer: Response) -> None:
        self._begin()
        self._complete = True
        await self._send(self._exchange.whole(answer, last=self._stopping.is_set()))

    async def begin(self, head: Response) -> None:
        self._begin()
        await self._send(self._exchange.begin(head, last=self._stopping.is_set()))

    async def send(self, data: bytes) -> None:
        # A reader that keeps up never makes us wait: others have their turn here.
        await trio.lowlevel.checkpoint()
        if self._with_body:
            await self._send(self._exchange.piece(data))

    def _begin(self) -> None:
        if self._begun:
            raise RuntimeError("an answer begins once")
        self._begun = True

    async def _send(self, data: bytes) -> None:
        try:
            await self._write(data)
        except OSError:
            await self._cut()

    async def _cut(self) -> None:
        # Whoever answers may be a program of others that takes an error of ours for one
        # of its own, and goes on. A cancel ends it.
        self._scope.cancel()
        await trio.lowlevel.checkpoint()
