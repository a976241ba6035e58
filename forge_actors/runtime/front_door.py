"""TCP beside the socket of a service: on loopback, for programs and for browsers."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.errors import Refused, Unavailable
from forge_actors.domain.logins import LoginLink
from forge_actors.edges.gateway.auth import LOGIN, TICKET_SECONDS, Gate
from forge_actors.edges.gateway.listeners import BACKLOG
from forge_actors.edges.gateway.messages import error_response
from forge_actors.edges.gateway.server import Server
from forge_actors.runtime.api_token import api_token

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from forge_actors.edges.gateway.front import Front
    from forge_actors.edges.gateway.messages import Limits, Request, Response

#: Nothing but this machine ever reaches a service.
LOOPBACK = "127.0.0.1"
LOOPBACK_6 = "::1"


class FrontDoor:
    """Answers `front` over TCP too: from the start on, or once somebody asks for it.

    `tell` is told where that is.
    """

    def __init__(
        self,
        home: Path,
        front: Front,
        *,
        port: int | None,
        limits: Limits,
        rate: float,
        tell: Callable[[str | None], None] = lambda _: None,
    ) -> None:
        self._home = home
        self._front = front
        self._port = port
        self.limits = limits
        self._rate = rate
        self._tell = tell
        self._one_at_a_time = trio.Lock()
        self._begun = trio.Event()
        self._stopped = trio.Event()
        self._nursery: trio.Nursery | None = None
        self._gate: Gate | None = None
        self._server: Server | None = None
        self.endpoint: str | None = None
        front.add(LOGIN, self._login)

    @property
    def connections(self) -> int:
        """How many clients there are."""
        return 0 if self._server is None else self._server.connections

    async def serve(
        self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve until `stop`; begun once TCP is open, if it is to be.

        Raises:
            Refused: the port is taken. InvalidInput: the token cannot be used.
        """
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            if self._port is not None:
                await self._open(self._port)
            self._begun.set()
            task_status.started()
            await self._stopped.wait()
            if self._server is not None:
                self._server.stop()
            self._tell(None)

    def stop(self) -> None:
        """Accept nothing new; requests in hand have a moment left."""
        self._stopped.set()

    async def login_link(self, place: str = "/") -> LoginLink:
        """A link that lets one browser in, once; TCP is opened where it is not yet.

        Raises:
            Refused, InvalidInput: it cannot be; or there is no such place.
        """
        # The socket is answered a moment before the port of the settings is open.
        await self._begun.wait()
        async with self._one_at_a_time:
            if self._stopped.is_set():
                raise Unavailable("the service ends")
            gate = self._gate or await self._open(0)
            if self._stopped.is_set():
                raise Unavailable("the service ends")
        endpoint = self.endpoint or ""
        url = f"{endpoint}/{LOGIN}?ticket={gate.ticket(place)}"
        return LoginLink(url, endpoint, TICKET_SECONDS)

    def log_out(self, page: str) -> bool:
        """Let a browser in no more, by the id of its session; whether it was."""
        return self._gate is not None and self._gate.log_out(page)

    def _cut(self, page: str) -> None:
        if self._server is not None:
            self._server.cut(page)

    async def _open(self, port: int) -> Gate:
        assert self._nursery is not None, "it was begun"
        token = api_token(self._home)
        sockets = _listening(port)
        port = sockets[0].getsockname()[1]
        hosts = [f"{LOOPBACK}:{port}", f"localhost:{port}"]
        if len(sockets) > 1:
            hosts.append(f"[{LOOPBACK_6}]:{port}")
        gate = Gate(token, f"forge-actors-{port}", rate=self._rate, ended=self._cut)
        server = Server(
            self._front,
            holds=self._front.holds,
            limits=self.limits,
            hosts=frozenset(hosts),
            origins=frozenset(f"http://{host}" for host in hosts),
            gate=gate,
        )
        listeners = [
            trio.SocketListener(trio.socket.from_stdlib_socket(one)) for one in sockets
        ]
        # Before it begins: whoever stops us meanwhile has to stop it too.
        self._server = server
        await self._nursery.start(server.serve, listeners)
        self._gate = gate
        self.endpoint = f"http://{hosts[0]}"
        if not self._stopped.is_set():
            self._tell(self.endpoint)
        return gate

    async def _login(self, request: Request) -> Response:
        if self._gate is None or request.asker.kind == "socket":
            return error_response(404, "NO_SUCH_ROUTE", "browsers come over TCP")
        return await self._gate.login(request)


def _listening(port: int) -> list[socket.socket]:
    """Sockets that listen on a port of loopback, 0 for any: of IPv4, and of IPv6 too
    where there is that.

    Raises:
        Refused: it is taken.
    """
    try:
        first = _bound(socket.AF_INET, LOOPBACK, port)
    except OSError as error:
        raise Refused(
            f"port {port} of {LOOPBACK} cannot be served: {error.strerror}; set another"
            " one as port in [gateway], or 0 for any that is free"
        ) from None
    try:
        return [first, _bound(socket.AF_INET6, LOOPBACK_6, first.getsockname()[1])]
    except OSError:
        return [first]


def _bound(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        # The connections of a service that ended keep its port from nobody.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening
