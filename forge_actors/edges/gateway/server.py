"""The smallest HTTP/1.1 server that no client can hold up: who may connect."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from forge_actors.edges.gateway.connection import Connection, Rules
from forge_actors.edges.gateway.messages import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.edges.gateway.messages import Handler

log = logging.getLogger(__name__)

LOCAL_HOSTS = frozenset({"localhost"})
DEFAULT_LIMITS = Limits()


class Server:
    """Serves `handler` on listeners, from `serve` until `stop` or a cancel."""

    def __init__(
        self,
        handler: Handler,
        *,
        limits: Limits = DEFAULT_LIMITS,
        hosts: frozenset[str] = LOCAL_HOSTS,
    ) -> None:
        self.limits = limits
        self._stopping = trio.Event()
        self._rules = Rules(handler, limits, hosts, self._stopping)
        self._connections: dict[Connection, trio.CancelScope] = {}

    @property
    def connections(self) -> int:
        return len(self._connections)

    def stop(self) -> None:
        """Accept nothing new; requests in hand have `limits.drain` seconds left."""
        self._stopping.set()
        for connection, scope in self._connections.items():
            if connection.idle:
                scope.cancel()

    async def serve(
        self,
        listeners: Sequence[trio.SocketListener],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until `stop`; the listeners are closed when this returns."""
        async with trio.open_nursery() as clients:

            async def accept() -> None:
                await trio.serve_listeners(
                    self._serve_client, list(listeners), handler_nursery=clients
                )

            async with trio.open_nursery() as accepting:
                accepting.start_soon(accept)
                task_status.started()
                await self._stopping.wait()
                accepting.cancel_scope.cancel()
            clients.cancel_scope.deadline = trio.current_time() + self.limits.drain

    async def _serve_client(self, stream: trio.SocketStream) -> None:
        connection = Connection(self._rules, stream)
        if len(self._connections) >= self.limits.connections:
            await connection.turn_away()
            return
        with trio.CancelScope() as scope:
            self._connections[connection] = scope
            try:
                await connection.run()
            except Exception:
                log.exception("a connection failed")
            finally:
                del self._connections[connection]
