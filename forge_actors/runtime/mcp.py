"""The MCP server as a part of a service: whether there is one, its socket, its life.

The packages that it needs are an extra, and take half a second to load. So they are
loaded only by a service that has them, in a thread, while the rest of it starts.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
from typing import TYPE_CHECKING, Any

import trio

from forge_actors import __version__
from forge_actors.domain.errors import ForgeError
from forge_actors.edges.gateway.door import Door

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.control import Control
    from forge_actors.edges.gateway.front import Front
    from forge_actors.edges.gateway.mcp.gateway import McpGateway
    from forge_actors.runtime.gateway_settings import GatewaySettings

MCP_SOCKET = "mcp.sock"
ABSENT = (
    "its extra is not installed: pip install 'forge-actors[gateway]' where the service"
    " runs, and start it again"
)
OFF = "it is off: set mcp = true in [gateway] and start the service again"
_GATEWAY = "forge_actors.edges.gateway.mcp.gateway"
_PROBE = "forge_actors.edges.gateway.mcp.probe"


class GatewayBroken(ForgeError):
    """The extra `gateway` is installed, but cannot be used."""

    code = "GATEWAY_IMPORT_FAILED"


class Loading:
    """The packages of the MCP server, which are loaded while others start."""

    def __init__(self) -> None:
        self._done = trio.Event()
        self._failure: GatewayBroken | None = None
        #: Without them there is no MCP server, which is no failure.
        self.installed = importlib.util.find_spec("mcp") is not None

    async def run(self) -> None:
        """Load them, if they are there."""
        try:
            if self.installed:
                await trio.to_thread.run_sync(_load, abandon_on_cancel=True)
        except GatewayBroken as error:
            self._failure = error
        self._done.set()

    async def wait(self) -> None:
        """Return once they are loaded.

        Raises:
            GatewayBroken: they are there, and cannot be.
        """
        await self._done.wait()
        if self._failure is not None:
            raise self._failure


def _load() -> None:
    # They tell of each request.
    for name in ("mcp", "httpx2", "sse_starlette"):
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        for name in (_GATEWAY, _PROBE):
            importlib.import_module(name)
    except Exception as error:
        raise GatewayBroken(
            f"the extra gateway is installed, but cannot be loaded: {error}; install it"
            " again with pip install --force-reinstall 'forge-actors[gateway]'"
        ) from error


class Mcp:
    """The MCP server of one service. Where there is none, `view` says why."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self._loading = Loading() if settings.mcp else None
        self._gateway: McpGateway | None = None
        self._door: Door | None = None
        self._ended = trio.Event()

    @property
    def serves(self) -> bool:
        """Whether there is, or will be, something to serve agents with."""
        return self._loading is not None and self._loading.installed

    async def load(self) -> None:
        """Load what it needs, beside the rest of the start."""
        if self._loading is not None:
            await self._loading.run()

    async def open(
        self,
        nursery: trio.Nursery,
        control: Control,
        front: Front,
        place: Callable[[], str],
        *,
        sessions: int,
    ) -> bool:
        """Serve agents from now on, so many at once, on `/mcp` of `front` and on the
        socket at `place`; False: there is nothing to serve them with.

        Raises:
            GatewayBroken: it cannot be loaded.
            ForgeError, OSError: the socket cannot be made.
        """
        if self._loading is None or not self._loading.installed:
            self._ended.set()
            return False
        await self._loading.wait()
        self._gateway = _gateway(control, sessions, self._settings.mcp_idle)
        self._door = Door(place)
        front.add("mcp", self._gateway.handler, self._gateway.holds)
        await nursery.start(self._serve, self._gateway, self._door)
        nursery.start_soon(self._door.keep)
        return True

    async def _serve(
        self, gateway: McpGateway, door: Door, *, task_status: trio.TaskStatus[None]
    ) -> None:
        try:
            await gateway.run([door], task_status=task_status)
        finally:
            door.remove()
            self._ended.set()

    async def end(self) -> None:
        """Take nobody new on; return when every session has ended."""
        if self._gateway is not None:
            self._gateway.stop()
            await self._ended.wait()

    def check(self) -> None:
        """Look whether the socket is still there."""
        if self._door is not None:
            self._door.check()

    async def probe(self, path: str) -> None:
        """Be an agent that comes over the socket at `path`, which `open` served.

        Raises:
            ForgeError: with the code MCP_END_TO_END_FAILED.
        """
        module: Any = importlib.import_module(_PROBE)
        await module.probe(path)

    def view(self) -> dict[str, object]:
        """What the status of the service says of it."""
        if self._loading is None:
            return {"available": False, "note": OFF}
        if not self._loading.installed:
            return {"available": False, "note": ABSENT}
        if self._gateway is None:
            return {"available": False, "note": "it starts"}
        return {"available": True, **self._gateway.view()}


def _gateway(control: Control, sessions: int, idle: float) -> McpGateway:
    from forge_actors.edges.gateway.mcp.gateway import McpGateway
    from forge_actors.edges.gateway.mcp.sessions import SessionLimits

    limits = SessionLimits(sessions=sessions, idle=idle)
    return McpGateway(control, __version__, limits)
