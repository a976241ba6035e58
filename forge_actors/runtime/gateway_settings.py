"""Settings of the interface to other programs: where it is, and how much it bears."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from forge_actors.domain.errors import InvalidInput

Places = Annotated[int, Meta(ge=1, le=10_000)]
Port = Annotated[int, Meta(ge=0, le=65_535)]
Rate = Annotated[float, Meta(ge=1, le=1_000_000)]
BodyBytes = Annotated[int, Meta(ge=1024, le=64 * 1024 * 1024)]

McpSessions = Annotated[int, Meta(ge=1, le=64)]
McpIdle = Annotated[float, Meta(ge=1, le=86_400)]


class GatewaySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Who may come how often; those who are too many are told to come again."""

    #: Requests held open until something happens, as `wait` and `logs -f` ask for.
    held_requests: Places = 256
    #: Connections in all; those beyond `held_requests` are left for short requests.
    connections: Places = 384
    #: Readers of `GET /v1/events` as a stream, beside all those and those below.
    streams: Places = 2000
    #: The port of 127.0.0.1 that is served too, by token or in a browser; 0 is any free
    #: one. Without it there is none until somebody asks for a login link.
    port: Port | None = None
    #: Connections through that port, apart from those above.
    tcp_connections: Places = 384
    #: Bytes that the body of a request through that port may have; not of a batch.
    tcp_body_bytes: BodyBytes = 1024 * 1024
    #: Requests through that port in a second: of programs with the token, of pages, and
    #: of those who are nobody. Twice as many at once.
    tcp_requests: Rate = 200.0

    #: Serve agents by MCP, where the packages for that are installed.
    mcp: bool = True
    #: Agents that are connected at once. The one that was idle for longest makes room.
    mcp_sessions: McpSessions = 64
    #: Seconds after which a session ends that nobody used, if it is one of HTTP.
    mcp_idle: McpIdle = 900.0

    def check(self) -> None:
        """Check what no single field tells.

        Raises:
            InvalidInput: something does not fit together.
        """
        if self.connections <= self.held_requests:
            raise InvalidInput(
                "gateway.connections",
                "must be more than gateway.held_requests, so that a place is left",
            )
