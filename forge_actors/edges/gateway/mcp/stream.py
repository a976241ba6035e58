"""MCP over one stream: a JSON message a line, as the program that agents start speaks.

Its first line may introduce the agent. A client is not read on while it does not take
its answers, and has only so many requests in progress.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import msgspec
import trio
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from msgspec import Struct
from trio_util import AsyncValue

from forge_actors.edges.gateway.mcp.caller import (
    CALLER,
    MAX_CALLS,
    Caller,
    Introduction,
)
from forge_actors.edges.gateway.mcp.sessions import Session

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server.lowlevel.server import Server

    from forge_actors.edges.gateway.mcp.sessions import SessionLimits, Sessions

log = logging.getLogger(__name__)

READ_BYTES = 64 * 1024
#: Seconds for the answers of what an agent asked just before it closed its end.
LAST_SECONDS = 1.0
#: Seconds in which the first line has to come.
INTRODUCTION_SECONDS = 10.0


class First(Struct, forbid_unknown_fields=True):
    """The first line, if it is an introduction."""

    forge_actors: Introduction


class StreamSession:
    """One agent on one stream, from its first line to its last."""

    def __init__(
        self,
        server: Server[dict[str, Any]],
        stream: trio.SocketStream,
        limits: SessionLimits,
        sessions: Sessions,
    ) -> None:
        self._server = server
        self._stream = stream
        self._limits = limits
        self._sessions = sessions
        self._scope = trio.CancelScope()
        self._turn = trio.Lock()
        #: The ids of the requests that were not answered yet, and how many they are.
        self._open: set[str | int] = set()
        self._unanswered = AsyncValue(0)
        self._data = bytearray()

    async def serve(self, name: str) -> None:
        """Serve it until one side has had enough. It closes the stream."""
        async with self._stream:
            try:
                with self._scope:
                    await self._serve(name)
            except* (
                trio.BrokenResourceError,
                trio.ClosedResourceError,
                trio.TooSlowError,
                anyio.BrokenResourceError,
                anyio.ClosedResourceError,
            ):
                log.debug("an agent is gone, or took nothing any more")

    async def _serve(self, name: str) -> None:
        with trio.fail_after(INTRODUCTION_SECONDS):
            first = await self._line()
        if first is None:
            return
        caller, introduced = _introduction(first)
        if not await self._sessions.make_room():
            await self._write(_refusal(None, "every session waits for an answer"))
            return
        session = Session(caller, self._close)
        session.expires = False
        self._sessions.add(name, session)
        CALLER.set(caller)
        try:
            await self._converse(None if introduced else first, name, session)
        finally:
            self._sessions.forget(name)

    async def _close(self) -> None:
        self._scope.cancel()

    async def _converse(self, first: bytes | None, name: str, session: Session) -> None:
        into, in_ = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        out, from_ = anyio.create_memory_object_stream[SessionMessage](0)

        async def read() -> None:
            async with into:
                line = first or await self._line()
                while line is not None:
                    with self._sessions.in_use(name, session):
                        await self._take(line, into, session)
                    line = await self._line()
                with trio.move_on_after(LAST_SECONDS):
                    await self._unanswered.wait_value(0)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            nursery.start_soon(self._send_all, from_, session)
            await serve_dual_era_loop(self._server, in_, out, lifespan_state={})
            nursery.cancel_scope.cancel()

    async def _take(
        self,
        line: bytes,
        into: MemoryObjectSendStream[SessionMessage | Exception],
        session: Session,
    ) -> None:
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError as error:
            await self._write(_refusal(None, "the line is no message of JSON-RPC"))
            log.debug("a line of an agent could not be read: %s", error)
            return
        if isinstance(message, types.JSONRPCRequest):
            if message.id in self._open:
                # The answer to that name belongs to the first one.
                problem = f"a request {message.id!r} is in progress: take another id"
                await self._write(_refusal(None, problem))
                return
            if len(self._open) >= MAX_CALLS:
                problem = f"{MAX_CALLS} requests are in progress: wait for one of them"
                await self._write(_refusal(message.id, problem))
                return
            self._open.add(message.id)
            self._unanswered.value = len(self._open)
            session.requests += 1

        async def given_up() -> None:
            self._settle(message, session)

        metadata = ServerMessageMetadata(on_request_unanswered=given_up)
        await into.send(SessionMessage(message, metadata))

    def _settle(self, message: types.JSONRPCMessage, session: Session) -> None:
        """A request was answered, or its client does not want that any more."""
        id_ = getattr(message, "id", None)
        if id_ in self._open:
            self._open.discard(id_)
            self._unanswered.value = len(self._open)
            session.requests -= 1

    async def _send_all(
        self, from_: MemoryObjectReceiveStream[SessionMessage], session: Session
    ) -> None:
        async with from_:
            async for sent in from_:
                message = sent.message
                text = message.model_dump_json(by_alias=True, exclude_unset=True)
                await self._write(text.encode() + b"\n")
                if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                    self._settle(message, session)

    async def _write(self, data: bytes) -> None:
        async with self._turn:
            with trio.fail_after(self._limits.write_timeout):
                await self._stream.send_all(data)

    async def _line(self) -> bytes | None:
        """The next line that is not empty; None at the end."""
        while True:
            end = self._data.find(b"\n")
            if end >= 0:
                line = bytes(self._data[:end]).strip()
                del self._data[: end + 1]
                if line:
                    return line
            elif len(self._data) > self._limits.message_bytes:
                problem = f"a message has at most {self._limits.message_bytes} bytes"
                await self._write(_refusal(None, problem))
                return None
            else:
                data = await self._stream.receive_some(READ_BYTES)
                if not data:
                    return None
                self._data += data


def _introduction(line: bytes) -> tuple[Caller, bool]:
    """Who calls, and whether the line said so."""
    try:
        told = msgspec.json.decode(line, type=First)
    except (msgspec.MsgspecError, RecursionError):
        return Caller(), False
    return Caller(told.forge_actors), True


def _refusal(id_: str | int | None, problem: str) -> bytes:
    error = {"code": types.INVALID_REQUEST, "message": problem}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id_, "error": error}) + b"\n"
