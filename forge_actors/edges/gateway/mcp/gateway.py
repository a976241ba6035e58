"""The MCP server of one runtime: over HTTP, and for programs that agents start."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec
import trio
from msgspec import Struct

from forge_actors.edges.gateway.asgi import asgi_handler
from forge_actors.edges.gateway.listeners import peer_is_ours
from forge_actors.edges.gateway.mcp.http import HttpSessions
from forge_actors.edges.gateway.mcp.server import mcp_server
from forge_actors.edges.gateway.mcp.sessions import SessionLimits, Sessions
from forge_actors.edges.gateway.mcp.stream import StreamSession
from forge_actors.edges.gateway.mcp.tools import TOOLS, fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.control import Control
    from forge_actors.edges.gateway.messages import Request

log = logging.getLogger(__name__)


class McpGateway:
    """Answers agents from `run` until `stop`, or a cancel."""

    def __init__(
        self, control: Control, version: str, limits: SessionLimits | None = None
    ) -> None:
        self._limits = limits or SessionLimits()
        self._sessions = Sessions(self._limits)
        self._server = mcp_server(control, version)
        self._http = HttpSessions(self._server, self._limits, self._sessions)
        self._stopping = trio.Event()
        self._connections = 0
        #: What answers requests to `/mcp`, and which of them are kept open.
        self.handler = asgi_handler(self._http)
        self.holds = holds
        self.fingerprint = fingerprint()

    @property
    def sessions(self) -> int:
        """How many agents are connected, of those that say so."""
        return self._sessions.count

    def view(self) -> dict[str, object]:
        """What the status of the service says of it."""
        return {
            "fingerprint": self.fingerprint,
            "tools": len(TOOLS),
            "sessions": {"used": self.sessions, "limit": self._limits.sessions},
        }

    def stop(self) -> None:
        """Take nobody new on; what is in hand ends with its sessions."""
        self._stopping.set()

    async def run(
        self,
        listeners: Sequence[trio.abc.Listener[trio.SocketStream]] = (),
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until `stop`. Programs that agents start connect to the listeners."""
        async with self._http.run(), trio.open_nursery() as clients:
            async with trio.open_nursery() as accepting:
                if listeners:
                    accepting.start_soon(self._accept, listeners, clients)
                task_status.started()
                await self._stopping.wait()
                accepting.cancel_scope.cancel()
            await self._sessions.close()
            clients.cancel_scope.cancel()

    async def _accept(
        self,
        listeners: Sequence[trio.abc.Listener[trio.SocketStream]],
        clients: trio.Nursery,
    ) -> None:
        await trio.serve_listeners(
            self._serve_stream, list(listeners), handler_nursery=clients
        )

    async def _serve_stream(self, stream: trio.SocketStream) -> None:
        if not peer_is_ours(stream):
            await trio.aclose_forcefully(stream)
            return
        self._connections += 1
        session = StreamSession(self._server, stream, self._limits, self._sessions)
        try:
            await session.serve(f"stream-{self._connections}")
        except Exception:
            log.exception("the session of an agent failed")


class _Named(Struct, frozen=True):
    name: str = ""


class _Asked(Struct, frozen=True):
    """As much of a message as says whether it is a wait."""

    method: str = ""
    params: _Named = _Named()


def holds(request: Request) -> bool:
    """Whether a request is kept open until something happens elsewhere."""
    if request.method != "POST":
        return request.method == "GET"
    try:
        asked = msgspec.json.decode(request.body, type=_Asked)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return asked.method == "tools/call" and asked.params.name == "wait"
