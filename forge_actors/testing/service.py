"""A service without a runtime: the real HTTP interface in front of a `FakeControl`."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from forge_actors.client.home import prepare_socket_path
from forge_actors.edges.gateway.event_hub import EventHub
from forge_actors.edges.gateway.handling import handler, holds
from forge_actors.edges.gateway.listeners import unix_listener
from forge_actors.edges.gateway.messages import Limits
from forge_actors.edges.gateway.server import Server
from forge_actors.testing.control import FakeControl

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator

    from forge_actors.domain.logins import Logins


@asynccontextmanager
async def fake_service(
    home: str | os.PathLike[str],
    *,
    limits: Limits | None = None,
    logins: Logins | None = None,
    streams: int = 100,
) -> AsyncGenerator[FakeControl, None]:
    """Serve a `FakeControl` on the control socket of `home`, an existing folder."""
    control = FakeControl()
    hub = EventHub(control, streams)
    answers = handler(control, logins, hub=hub)
    server = Server(answers, holds=holds, limits=limits or Limits())
    listener = unix_listener(prepare_socket_path(str(home)))
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, [listener])
        nursery.start_soon(hub.run)
        yield control
        nursery.cancel_scope.cancel()
