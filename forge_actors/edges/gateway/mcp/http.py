"""MCP over HTTP: the session manager of the SDK, with a bound on its sessions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from forge_actors.edges.gateway.callers import HEADER, job_in
from forge_actors.edges.gateway.mcp.caller import CALLER, Caller
from forge_actors.edges.gateway.mcp.sessions import Session
from forge_actors.edges.gateway.messages import RETRY_AFTER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from mcp.server.lowlevel.server import Server

    from forge_actors.edges.gateway.asgi import Message
    from forge_actors.edges.gateway.mcp.sessions import SessionLimits, Sessions

    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]

JOB_HEADER = HEADER.encode()
SESSION_HEADER = b"mcp-session-id"
VERSION_HEADER = b"mcp-protocol-version"
FULL = "mcp_session_capacity_exhausted"


class HttpSessions:
    """An ASGI application; it answers while `run` is entered."""

    def __init__(
        self, server: Server[dict[str, Any]], limits: SessionLimits, sessions: Sessions
    ) -> None:
        self._sessions = sessions
        # Who may come at all, our own server has decided before.
        self._manager = StreamableHTTPSessionManager(
            app=server,
            session_idle_timeout=limits.idle,
            max_sessions=None,
            max_request_body_size=limits.message_bytes,
        )

    def run(self) -> AbstractAsyncContextManager[None]:
        return self._manager.run()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        name = headers.get(SESSION_HEADER)
        version = headers.get(VERSION_HEADER)
        if name is not None:
            await self._answer_in(name.decode("latin-1"), scope, receive, send)
        elif version and version.decode("latin-1") not in HANDSHAKE_PROTOCOL_VERSIONS:
            # A request that is complete in itself belongs to no session.
            CALLER.set(_caller(headers))
            await self._manager.handle_request(scope, receive, send)
        elif not await self._sessions.make_room():
            await _refuse(send)
        else:
            with self._sessions.opening():
                await self._open(_caller(headers), scope, receive, send)

    async def _answer_in(
        self, name: str, scope: Message, receive: Receive, send: Send
    ) -> None:
        session = self._sessions.find(name)
        if session is None:
            await self._manager.handle_request(scope, receive, send)
            return
        CALLER.set(session.caller)
        gone = False

        async def watched(message: Message) -> None:
            nonlocal gone
            if message["type"] == "http.response.start":
                gone = message["status"] == 404
            await send(message)

        stream = scope["method"] != "POST"
        with self._sessions.in_use(name, session, stream=stream):
            await self._manager.handle_request(scope, receive, watched)
        if gone or scope["method"] == "DELETE":
            self._sessions.forget(name)

    async def _open(
        self, caller: Caller, scope: Message, receive: Receive, send: Send
    ) -> None:
        CALLER.set(caller)
        answer: list[Message] = []

        async def collect(message: Message) -> None:
            answer.append(message)

        # Many a client leaves as soon as it has read what it wants. If that cancelled
        # the rest, the SDK would take the session for one that never began.
        await self._manager.handle_request(scope, receive, collect)
        for message in answer:
            if message["type"] == "http.response.start" and message["status"] < 400:
                for header, value in message.get("headers", ()):
                    if header.lower() == SESSION_HEADER:
                        name = value.decode("latin-1")
                        self._sessions.add(name, self._session(name, caller))
            await send(message)

    def _session(self, name: str, caller: Caller) -> Session:
        async def close() -> None:
            # As if its client had said goodbye: all that waits for it ends.
            await self._manager.handle_request(_goodbye(name), _nothing, _drop)

        return Session(caller, close)


def _caller(headers: dict[bytes, bytes]) -> Caller:
    return Caller(job=job_in(headers.get(JOB_HEADER, b"").decode("latin-1")))


def _goodbye(name: str) -> Message:
    headers = [(SESSION_HEADER, name.encode("latin-1")), (b"accept", b"*/*")]
    return {
        "type": "http",
        "method": "DELETE",
        "path": "/mcp",
        "root_path": "",
        "query_string": b"",
        "headers": headers,
    }


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _drop(message: Message) -> None:
    """Nobody reads it."""


async def _refuse(send: Send) -> None:
    error = {"code": -32000, "message": f"{FULL}: every session waits for an answer"}
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    retry = (b"retry-after", str(RETRY_AFTER).encode())
    await send({"type": "http.response.start", "status": 503, "headers": [retry]})
    await send({"type": "http.response.body", "body": body})
