"""A GitHub for tests as a real server on the loopback."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import h11
import trio

from forge_actors.testing.github import control
from forge_actors.testing.github.faults import Troubles
from forge_actors.testing.github.routes import Request, Response, Routes

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from forge_actors.testing.github.faults import Fault
    from forge_actors.testing.github.world import World

READ_BYTES = 64 * 1024


class GitHubServer:
    """Where it is, what it was asked, and what goes wrong there."""

    def __init__(
        self, world: World, port: int, prefix: str = "", scheme: str = "http"
    ) -> None:
        self.world = world
        self.site = f"{scheme}://127.0.0.1:{port}"
        self.prefix = prefix
        self.base = f"{self.site}{prefix}"
        self.routes = Routes(world, self.base, self.site)
        self.troubles = Troubles()
        #: Connections that were made.
        self.connections = 0

    def respond(self, request: Request) -> tuple[Response, Fault | None]:
        response = self.routes.answer(request)
        fault = self.troubles.met(request.path)
        if fault is not None:
            response = fault.change(response)
        self.troubles.came(request, response.status)
        return response, fault


@asynccontextmanager
async def serving(
    world: World, *, prefix: str = "", context: ssl.SSLContext | None = None
) -> AsyncIterator[GitHubServer]:
    """Serve while the block lasts; over TLS if there is a context for it."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    scheme = "http" if context is None else "https"
    server = GitHubServer(world, port, prefix, scheme)
    async with trio.open_nursery() as nursery:
        handle = partial(_handle, server, context)
        nursery.start_soon(partial(trio.serve_listeners, handle, [listener]))
        try:
            yield server
        finally:
            nursery.cancel_scope.cancel()


async def _handle(
    server: GitHubServer, context: ssl.SSLContext | None, stream: trio.SocketStream
) -> None:
    server.connections += 1
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        if context is None:
            await _talk(server, stream)
        else:
            over = trio.SSLStream(
                stream, context, server_side=True, https_compatible=True
            )
            await _talk(server, over)


async def _talk(server: GitHubServer, stream: trio.abc.Stream) -> None:
    """One connection, however many requests come over it."""
    http = h11.Connection(h11.SERVER)
    head, body = None, b""
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(bytes(await stream.receive_some(READ_BYTES)))
        elif isinstance(event, h11.Request):
            head, body = event, b""
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            if not await _answer(server, stream, http, head, body):
                return
        elif isinstance(event, h11.ConnectionClosed):
            return
        elif event is h11.PAUSED:
            http.start_next_cycle()


async def _answer(
    server: GitHubServer,
    stream: trio.abc.Stream,
    http: h11.Connection,
    head: h11.Request,
    body: bytes,
) -> bool:
    """Whether the connection goes on."""
    headers = {name.decode(): value.decode() for name, value in head.headers}
    method, target = head.method.decode(), head.target.decode()
    response, fault = Response(404, b"{}"), None
    if target.startswith(control.PLACE):
        world, troubles = server.world, server.troubles
        response = control.control(world, troubles, method, target, body)
    elif target.startswith(f"{server.prefix}/"):
        path = target.removeprefix(server.prefix)
        request = Request.of(method, path, headers, body)
        response, fault = server.respond(request)
    if fault is not None and fault.gate is not None:
        server.troubles.under_way += 1
        await fault.gate.wait()
        server.troubles.under_way -= 1
    if fault is not None and fault.hang_up:
        await stream.aclose()
        return False
    sent = {"content-length": str(len(response.body)), **response.headers}
    if response.status == 304:
        del sent["content-length"]
    events = (
        h11.Response(status_code=response.status, headers=list(sent.items())),
        h11.Data(data=response.body),
        h11.EndOfMessage(),
    )
    cut = None if fault is None else fault.cut_after
    if cut is not None:
        await stream.send_all(http.send(events[0]) or b"")
        await stream.send_all(response.body[:cut])
        await stream.aclose()
        return False
    data = b"".join(map(partial(_sent, http), events))
    await stream.send_all(data)
    return True


def _sent(http: h11.Connection, event: h11.Event) -> bytes:
    return http.send(event) or b""
