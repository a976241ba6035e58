"""The long-running service: a runtime with a control socket, until it is stopped."""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import sys
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from time import time
from typing import TYPE_CHECKING

import trio
from trio_util import wait_any

from forge_actors import __version__
from forge_actors.domain.errors import ForgeError, Refused
from forge_actors.domain.open_files import LEAST
from forge_actors.edges.gateway import metrics
from forge_actors.edges.gateway.auth import READY
from forge_actors.edges.gateway.door import Door
from forge_actors.edges.gateway.event_hub import EventHub
from forge_actors.edges.gateway.front import Front
from forge_actors.edges.gateway.handling import handler, holds
from forge_actors.edges.gateway.messages import Limits
from forge_actors.edges.gateway.pages import handler as pages
from forge_actors.edges.gateway.server import Server
from forge_actors.edges.gateway.state import ready
from forge_actors.edges.machine import open_files, raise_open_files
from forge_actors.runtime import service_log
from forge_actors.runtime.front_door import FrontDoor
from forge_actors.runtime.groups import only_failure
from forge_actors.runtime.mcp import MCP_SOCKET, Mcp
from forge_actors.runtime.no_room import lacks_room, wait_for_room
from forge_actors.runtime.ownership import tell_serving
from forge_actors.runtime.runtime import open_served
from forge_actors.runtime.views import timestamp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from forge_actors.domain.open_files import OpenFiles
    from forge_actors.runtime.gateway_settings import GatewaySettings
    from forge_actors.runtime.handles import Runtime

log = logging.getLogger(__name__)

#: New objects after which the collector of cycles looks at them; Python's own is 700.
COLLECT_AFTER = 10_000


CONTROL_SOCKET = "control.sock"
AGENT_SOCKET = "agent.sock"
#: Exit status of a service in whose place another release is to be started.
SUPERSEDED = 75


def serve(
    home: Path,
    place: Callable[[str], str],
    *,
    ready_fd: int | None = None,
    log_file: Path | None = None,
) -> int:
    """Serve the home until a signal or a request to stop; the exit status.

    It is 75 if the service ends because another release was made the active one.
    `place` makes ready where a socket is to be, and says where that is.
    `ready_fd` is written an empty line to and closed once requests are answered; before
    that, a line that says why for each time that the start has to wait. `log_file` is
    what standard error is, where that file is ours to begin anew.

    Raises:
        ForgeError: it could not start, or one of its parts failed for good.
        OSError: the system refused what a part of it needs.
    """
    files = raise_open_files()
    if files.limit is not None and files.limit < LEAST:
        raise Refused(f"{files}; a service needs at least {LEAST}")
    service_log.begin(service_log.settings_of(home), log_file)
    try:
        return trio.run(_serve, home, place, ready_fd)
    except BaseExceptionGroup as group:
        failure = only_failure(group)
        if isinstance(failure, ForgeError | OSError):
            raise failure from None
        raise


async def _serve(home: Path, place: Callable[[str], str], ready_fd: int | None) -> int:
    # What is made until then stays: to look through it time and again while a long
    # queue is loaded would take as long as the loading. `_spare_collector` ends this.
    gc.disable()
    with (
        trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals,
        trio.open_signal_receiver(signal.SIGHUP) as hangups,
    ):
        # Whoever starts us may have held them back, so that none came before this.
        ours = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ours)
        status = 0
        start = Start()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_stop_on_signal, signals, start, nursery.cancel_scope)
            with start.scope:
                async with open_with_room(home, place, start, ready_fd) as runtime:
                    start.done = True
                    door = Door(partial(place, CONTROL_SOCKET))
                    nursery.start_soon(_look_on_signal, hangups, runtime, door)
                    mcp = Mcp(runtime.settings.gateway)
                    nursery.start_soon(mcp.load)
                    await _answer(runtime, door, start.stop, ready_fd, mcp, place)
                if runtime.control.successor is not None:
                    status = SUPERSEDED
            nursery.cancel_scope.cancel()
        if not start.done:
            log.info("it was stopped before it was ready")
    return status


@asynccontextmanager
async def open_with_room(
    home: Path, place: Callable[[str], str], start: Start, ready_fd: int | None
) -> AsyncIterator[Runtime]:
    """`open_served`, as soon as the disk of the home has room for it."""
    started_at = timestamp(time())
    while True:
        async with AsyncExitStack() as stack:
            try:
                opening = open_served(home, partial(place, AGENT_SOCKET))
                runtime = await stack.enter_async_context(opening)
            except (ForgeError, OSError) as error:
                if not lacks_room(error, home):
                    raise
                failure = error
            else:
                yield runtime
                return
        if ready_fd is not None:
            _tell(ready_fd, f"{failure}\n".encode())
        await wait_for_room(
            home,
            partial(place, CONTROL_SOCKET),
            failure,
            request_stop=start.request_stop,
            started_at=started_at,
        )
        await trio.lowlevel.checkpoint_if_cancelled()


class Start:
    """The start of a service, which a request to stop cuts short."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.done = False
        self.stop = trio.Event()

    def request_stop(self) -> None:
        self.stop.set()
        if not self.done:
            self.scope.cancel()


async def _stop_on_signal(
    signals: AsyncIterator[int], start: Start, scope: trio.CancelScope
) -> None:
    """The first signal asks for an orderly stop, the second cuts requests short."""
    await anext(signals)
    start.request_stop()
    await anext(signals)
    scope.cancel()


async def _look_on_signal(
    signals: AsyncIterator[int], runtime: Runtime, door: Door
) -> None:
    """A hang-up asks to look at what is outside: the socket, the file of the log, and
    the settings."""
    async for _ in signals:
        door.check()
        service_log.reopen()
        try:
            changes = await runtime.control.reload_settings()
        except ForgeError as error:
            log.error("the settings were not reloaded: %s", error)
        else:
            told = ", ".join(f"{c.name} {c.old!r} -> {c.new!r}" for c in changes)
            log.info("the settings were reloaded: %s", told or "nothing changed")


async def _answer(
    runtime: Runtime,
    door: Door,
    stop: trio.Event,
    ready_fd: int | None,
    mcp: Mcp,
    place: Callable[[str], str],
) -> None:
    gateway, control = runtime.settings.gateway, runtime.control
    files = open_files()
    limits = client_limits(gateway, files)
    over_tcp = tcp_limits(gateway, files, limits)
    taken = limits.connections + over_tcp.connections
    hub = EventHub(control, files.streams(taken, gateway.streams))
    front = Front()
    front_door = FrontDoor(
        runtime.home,
        front,
        port=gateway.port,
        limits=over_tcp,
        rate=gateway.tcp_requests,
        tell=partial(setattr, control, "endpoint"),
    )
    front.add("v1", handler(control, front_door, hub), holds)
    front.add(READY, partial(ready, control))
    for first in pages.FIRST:
        front.add(first, pages.handle)
    server = Server(front, holds=front.holds, limits=limits)
    own = partial(metrics.gateway_families, {"socket": server, "tcp": front_door}, hub)
    front.add(metrics.PATH, metrics.handler(control, own))
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(server.serve, [door])
            await nursery.start(front_door.serve)
            nursery.start_soon(door.keep)
            nursery.start_soon(hub.run)
            control.mcp_view = mcp.view
            if await mcp.open(nursery, control, front, partial(place, MCP_SOCKET)):
                await mcp.probe(place(CONTROL_SOCKET))
            tell_serving(runtime.home, serving=True)
            _spare_collector()
            _say_ready(runtime, ready_fd)
            await wait_any(
                stop.wait,
                runtime.control.stop_requested.wait,
                runtime.control.watch_release,
            )
            # Before their connections are cut: an answer says that nothing more comes.
            runtime.control.close()
            hub.stop()
            tell_serving(runtime.home, serving=False)
            server.stop()
            front_door.stop()
            await mcp.end()
    finally:
        door.remove()


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


def _spare_collector() -> None:
    """Let the collector of cycles work less, as it hardly ever finds one here.

    What is there now stays, so it need not be looked through again; and most of what
    is made later lives until the next commit, longer than 700 objects take.
    """
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
    gc.enable()


def _say_ready(runtime: Runtime, ready_fd: int | None) -> None:
    line = {"event": "ready", "pid": os.getpid(), "home": str(runtime.home)}
    with suppress(OSError):  # a log on a full disk
        print(json.dumps({**line, "version": __version__}), file=sys.stderr, flush=True)
    if ready_fd is not None:
        _tell(ready_fd, b"\n")
        os.close(ready_fd)


def _tell(ready_fd: int, line: bytes) -> None:
    """Tell the one who started us: an empty line is ready, others say why not yet."""
    with suppress(OSError):  # it waits no more
        os.write(ready_fd, line)
