"""The interface of a service: what its clients reach, and by which ways."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from forge_actors.edges.gateway import metrics
from forge_actors.edges.gateway.auth import READY
from forge_actors.edges.gateway.event_hub import EventHub
from forge_actors.edges.gateway.front import Front
from forge_actors.edges.gateway.handling import handler, holds
from forge_actors.edges.gateway.messages import Limits
from forge_actors.edges.gateway.pages import handler as pages
from forge_actors.edges.gateway.state import ready
from forge_actors.edges.machine import open_files
from forge_actors.runtime.front_door import FrontDoor
from forge_actors.runtime.mcp import MCP_SOCKET
from forge_actors.runtime.probe import ask_over_socket, within_time

if TYPE_CHECKING:
    from collections.abc import Callable

    import trio

    from forge_actors.domain.open_files import OpenFiles
    from forge_actors.runtime.entrance import Entrance
    from forge_actors.runtime.gateway_settings import GatewaySettings
    from forge_actors.runtime.handles import Runtime
    from forge_actors.runtime.herald import Herald
    from forge_actors.runtime.mcp import Mcp


class Interface:
    """That of one runtime: opened, asked by clients of our own, and ended, in turn."""

    def __init__(
        self,
        runtime: Runtime,
        entrance: Entrance,
        mcp: Mcp,
        place: Callable[[str], str],
        herald: Herald,
    ) -> None:
        self._control = runtime.control
        self._entrance = entrance
        self._mcp = mcp
        self._place = place
        self._herald = herald
        gateway, files = runtime.settings.gateway, open_files()
        self.limits = client_limits(gateway, files)
        over_tcp = tcp_limits(gateway, files, self.limits)
        taken = self.limits.connections + over_tcp.connections
        # Each program that an agent started is a connection beside those.
        self._agents = max(1, files.streams(taken, gateway.mcp_sessions))
        taken += self._agents if mcp.serves else 0
        self._hub = EventHub(self._control, files.streams(taken, gateway.streams))
        self._front = Front()
        self._front_door = FrontDoor(
            runtime.home,
            self._front,
            port=gateway.port,
            limits=over_tcp,
            rate=gateway.tcp_requests,
            tell=self._tell_endpoint,
        )
        v1 = handler(self._control, self._front_door, self._hub)
        self._front.add("v1", v1, holds)
        self._front.add(READY, partial(ready, self._control))
        for first in pages.FIRST:
            self._front.add(first, pages.handle)
        servers: dict[str, metrics.Clients] = {
            "socket": entrance,
            "tcp": self._front_door,
        }
        own = partial(metrics.gateway_families, servers, self._hub)
        self._front.add(metrics.PATH, metrics.handler(self._control, own))
        #: Whether agents are served.
        self.has_mcp = False

    async def open(self, nursery: trio.Nursery) -> None:
        """Answer everybody from now on, by tasks of this nursery.

        Raises:
            ForgeError, OSError: one of the ways cannot be opened.
        """
        await self._entrance.open(nursery, self.limits)
        self._herald.endpoints["socket"] = self._entrance.path
        await nursery.start(self._front_door.serve)
        nursery.start_soon(self._hub.run)
        self._control.mcp_view = self._mcp.view
        self.has_mcp = await self._mcp.open(
            nursery,
            self._control,
            self._front,
            partial(self._place, MCP_SOCKET),
            sessions=self._agents,
        )
        tools = self._mcp.view().get("fingerprint")
        self._herald.tools = tools if isinstance(tools, str) else None
        self._entrance.lead_to(self._front)

    async def probe(self) -> None:
        """Be a client.

        Raises:
            ForgeError: it is not answered as a client should be.
        """
        path, instance = self._entrance.path, self._control.instance
        await within_time(partial(ask_over_socket, path, instance))

    async def probe_as_agent(self) -> None:
        """Be an agent.

        Raises:
            ForgeError: it is not served as an agent should be.
        """
        await within_time(partial(self._mcp.probe, self._entrance.path))

    async def end(self) -> None:
        """Take nothing new; return when what is in hand was answered or cut."""
        self._hub.stop()
        self._front_door.stop()
        self._entrance.refuse()
        await self._mcp.end()
        await self._entrance.end()

    def _tell_endpoint(self, endpoint: str | None) -> None:
        self._control.endpoint = endpoint
        self._herald.tell_endpoint("http", endpoint)


def client_limits(gateway: GatewaySettings, files: OpenFiles) -> Limits:
    """How many clients there may be: those of the settings, if so many files may."""
    held, connections = gateway.held_requests, gateway.connections
    if files.connections is not None and files.connections < connections:
        # Places for short requests are left in the same share as by default.
        connections = files.connections
        held = min(held, connections * 2 // 3)
    return Limits(held=held, connections=connections)


def tcp_limits(gateway: GatewaySettings, files: OpenFiles, owner: Limits) -> Limits:
    """The same for clients that come over TCP: what is left by those of the owner."""
    connections = gateway.tcp_connections
    if files.connections is not None:
        # A few in any case: they fit into what the service keeps for itself.
        connections = min(connections, max(4, files.connections - owner.connections))
    return Limits(
        held=min(gateway.held_requests, max(1, connections * 2 // 3)),
        connections=connections,
        body_bytes=gateway.tcp_body_bytes,
    )
