"""The smallest HTTP/1.1 server that no client can hold up: who may connect."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

import trio

from forge_actors.edges.gateway.connection import Connection
from forge_actors.edges.gateway.lookout import Lookout
from forge_actors.edges.gateway.messages import Limits
from forge_actors.edges.gateway.rules import Rules

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.edges.gateway.messages import Handler, Request
    from forge_actors.edges.gateway.rules import Gate

log = logging.getLogger(__name__)

LOCAL_HOSTS = frozenset({"localhost"})
DEFAULT_LIMITS = Limits()


class Server:
    """Serves `handler` on listeners, from `serve` until `stop` or a cancel.

    `holds` tells of a request whether `handler` keeps it open until something happens.
    Without a `gate` every client is the owner, who alone may reach the listeners.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        holds: Callable[[Request], bool] = lambda _: False,
        limits: Limits = DEFAULT_LIMITS,
        hosts: frozenset[str] = LOCAL_HOSTS,
        origins: frozenset[str] = frozenset(),
        gate: Gate | None = None,
    ) -> None:
        self.limits = limits
        self._stopping = trio.Event()
        self._handler = handler
        self._holds = holds
        self._hosts = hosts
        self._origins = origins
        self._gate = gate
        self._connections: set[Connection] = set()
        self._lookout: Lookout | None = None

    @property
    def connections(self) -> int:
        return len(self._connections)

    def stop(self) -> None:
        """Accept nothing new; requests in hand have `limits.drain` seconds left."""
        self._stopping.set()
        for connection in self._connections:
            if connection.idle:
                connection.scope.cancel()

    def cut(self, asker: str) -> None:
        """Whoever has this id is let in no more: nothing more is told of what it asked
        to be told of, or waits for."""
        for connection in self._connections:
            if connection.asker.id == asker and self._keeps(connection):
                connection.let_out()

    def _keeps(self, connection: Connection) -> bool:
        return self._lookout is not None and self._lookout.keeps(connection)

    async def serve(
        self,
        listeners: Sequence[trio.abc.Listener[trio.SocketStream]],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until `stop`; the listeners are closed when this returns."""
        async with trio.open_nursery() as watching:
            lookout = self._lookout = Lookout(watching)
            watching.start_soon(lookout.run)
            rules = Rules(
                self._handler,
                self._holds,
                self.limits,
                self._hosts,
                self._origins,
                self._gate,
                self._stopping,
                lookout,
            )
            await self._serve(rules, listeners, task_status)
            watching.cancel_scope.cancel()

    async def _serve(
        self,
        rules: Rules,
        listeners: Sequence[trio.abc.Listener[trio.SocketStream]],
        task_status: trio.TaskStatus[None],
    ) -> None:
        async with trio.open_nursery() as clients:

            async def accept() -> None:
                await trio.serve_listeners(
                    partial(self._serve_client, rules),
                    list(listeners),
                    handler_nursery=clients,
                )

            async with trio.open_nursery() as accepting:
                accepting.start_soon(accept)
                task_status.started()
                await self._stopping.wait()
                accepting.cancel_scope.cancel()
            clients.cancel_scope.deadline = trio.current_time() + self.limits.drain

    async def _serve_client(self, rules: Rules, stream: trio.SocketStream) -> None:
        connection = Connection(rules, stream)
        taken = len(self._connections) - len(rules.lookout.lasting)
        if taken >= self.limits.connections:
            await connection.turn_away()
            return
        self._connections.add(connection)
        try:
            with connection.scope:
                await connection.run()
        except Exception:
            log.exception("a connection failed")
        finally:
            rules.lookout.lasting.discard(connection)
            self._connections.remove(connection)
