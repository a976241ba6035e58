"""The long-running service: a runtime with a control socket, until it is stopped."""

from __future__ import annotations

import gc
import logging
import os
import signal
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from time import time
from typing import TYPE_CHECKING

import trio
from trio_util import wait_any

from forge_actors.domain.errors import ForgeError, Refused
from forge_actors.domain.open_files import LEAST
from forge_actors.domain.timestamps import timestamp
from forge_actors.edges.machine import open_files, raise_open_files
from forge_actors.edges.services.notify import Notifier
from forge_actors.edges.services.power import holding as holding_off_sleep
from forge_actors.edges.services.power import inhibitor
from forge_actors.runtime import service_log
from forge_actors.runtime.entrance import Entrance
from forge_actors.runtime.groups import only_failure
from forge_actors.runtime.herald import Herald
from forge_actors.runtime.interface import Interface, client_limits
from forge_actors.runtime.mcp import Mcp
from forge_actors.runtime.no_room import lacks_room, wait_for_room
from forge_actors.runtime.ownership import tell_serving
from forge_actors.runtime.power import Power
from forge_actors.runtime.readiness import FAILED, SERVED, Board
from forge_actors.runtime.runtime import Serving, open_served
from forge_actors.runtime.vigil import ASKING, Vigil

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from forge_actors.domain.releases import Release
    from forge_actors.runtime.handles import Runtime
    from forge_actors.runtime.ownership import Incarnation
    from forge_actors.runtime.settings import Settings

log = logging.getLogger(__name__)

#: New objects after which the collector of cycles looks at them; Python's own is 700.
COLLECT_AFTER = 10_000


CONTROL_SOCKET = "control.sock"
AGENT_SOCKET = "agent.sock"
#: Exit status of a service in whose place another release is to be started.
SUPERSEDED = 75
#: Why it ended, where somebody asked for that.
STOP_REQUESTED = "STOP_REQUESTED"


def serve(
    home: Path,
    place: Callable[[str], str],
    *,
    ready_fd: int | None = None,
    stages: bool = False,
    log_file: Path | None = None,
) -> int:
    """Serve the home until a signal or a request to stop; the exit status.

    It is 75 if the service ends because another release was made the active one.
    `place` makes ready where a socket is to be, and says where that is.
    `ready_fd` is written an empty line to and closed once requests are answered; before
    that, a line that says why for each time that the start has to wait, and with
    `stages` one for each stage of the start. `log_file` is what standard error is,
    where that file is ours to begin anew.

    Raises:
        ForgeError: it could not start, or one of its parts failed for good.
        OSError: the system refused what a part of it needs.
    """
    files = raise_open_files()
    if files.limit is not None and files.limit < LEAST:
        raise Refused(f"{files}; a service needs at least {LEAST}")
    service_log.begin(service_log.settings_of(home), log_file)
    board, notifier = Board(SERVED), Notifier(os.environ)
    herald = Herald(home, board, notifier, ready_fd, stages=stages)
    service = _Service(home, place, board, herald, notifier)
    try:
        status = trio.run(service.run)
    except BaseException as error:
        failure: BaseException = error
        if isinstance(error, BaseExceptionGroup):
            failure = only_failure(error)
        herald.failed(failure)
        if isinstance(failure, ForgeError | OSError) and failure is not error:
            raise failure from None
        raise
    herald.ended(status, board.now.ending or "STOPPED", "")
    return status


class _Service:
    """The tasks of one service."""

    def __init__(
        self,
        home: Path,
        place: Callable[[str], str],
        board: Board,
        herald: Herald,
        notifier: Notifier,
    ) -> None:
        self._home = home
        self._place = place
        self._board = board
        self._herald = herald
        self._notifier = notifier
        self._start = Start(board)
        self._mcp: Mcp | None = None
        self._vigil = Vigil(home, board, herald, notifier)

    async def run(self) -> int:
        # What is made until it is ready stays: to look through it time and again while
        # a long queue is loaded would take as long as the loading. `_spare_collector`
        # ends this.
        gc.disable()
        with (
            trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals,
            trio.open_signal_receiver(signal.SIGHUP) as hangups,
            trio.open_signal_receiver(*ASKING) as asking,
        ):
            # Whoever starts us may have held them back, so that none came before this.
            ours = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, *ASKING)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ours)
            status, start = 0, self._start
            async with trio.open_nursery() as nursery:
                nursery.start_soon(
                    _stop_on_signal, signals, start, nursery.cancel_scope
                )
                nursery.start_soon(self._vigil.report, asking)
                with start.scope:
                    async with self._open(nursery) as (runtime, entrance):
                        nursery.start_soon(
                            self._look_on_signal, hangups, runtime, entrance
                        )
                        nursery.start_soon(self._vigil.watch, runtime.control)
                        await self._answer(runtime, entrance)
                    if runtime.control.successor is not None:
                        status = SUPERSEDED
                nursery.cancel_scope.cancel()
            if not start.done:
                log.info("it was stopped before it was ready")
        return status

    @asynccontextmanager
    async def _open(
        self, nursery: trio.Nursery
    ) -> AsyncIterator[tuple[Runtime, Entrance]]:
        """The runtime and its entrance, as soon as the disk of the home has room."""
        started_at = timestamp(time())
        place = partial(self._place, CONTROL_SOCKET)
        while True:
            entrance = Entrance(
                place,
                self._board,
                self._herald.start_status,
                self._start.request_stop,
                self._vigil.pulse,
            )
            self._start.entrance = entrance
            try:
                async with AsyncExitStack() as stack:
                    opening = open_served(self._home, self._serving(nursery, entrance))
                    try:
                        runtime = await stack.enter_async_context(opening)
                    except Exception as error:
                        if not lacks_room(error, self._home):
                            self._board.fail_start(error)
                            raise
                        failure = error
                    else:
                        yield runtime, entrance
                        return
            finally:
                # Also after a request to stop: whoever waits is to hear of it.
                with trio.CancelScope(shield=True):
                    await entrance.end()
            self._wait_for_room(failure)
            await wait_for_room(
                self._home,
                place,
                failure,
                waiting=partial(self._herald.tell_starter, str(failure)),
                request_stop=self._start.request_stop,
                started_at=started_at,
            )
            await trio.lowlevel.checkpoint_if_cancelled()
            self._board.complain("room", None)

    def _wait_for_room(self, failure: Exception) -> None:
        self._board.again()
        self._board.complain("room", f"it waits for room on the disk: {failure}")

    def _serving(self, nursery: trio.Nursery, entrance: Entrance) -> Serving:
        async def owned(me: Incarnation, release: Release, settings: Settings) -> None:
            self._herald.owned(me, release)
            self._mcp = Mcp(settings.gateway)
            nursery.start_soon(self._mcp.load)
            # Another try, whose failure ends the start, is made for the transport.
            with suppress(ForgeError, OSError):
                await entrance.open(
                    nursery, client_limits(settings.gateway, open_files())
                )
                self._herald.endpoints["socket"] = entrance.path

        return Serving(partial(self._place, AGENT_SOCKET), self._board, owned)

    async def _answer(self, runtime: Runtime, entrance: Entrance) -> None:
        """Become ready; then answer until it is to end, and end what clients have."""
        control, board = runtime.control, self._board
        try:
            with board.guarding("MCP_TRANSPORT_FAILED", "endToEnd"):
                async with trio.open_nursery() as serving:
                    interface = await self._become_ready(runtime, entrance, serving)
                    power = runtime.settings.power
                    serving.start_soon(
                        Power(power, control, inhibitor, holding_off_sleep).run
                    )
                    serving.start_soon(self._vigil.watch_store, control)
                    await wait_any(
                        self._start.stop.wait,
                        control.stop_requested.wait,
                        control.watch_release,
                    )
                    if control.successor is not None:
                        board.observe("releaseCoherence", "fail")
                        board.end("RUNTIME_RELEASE_SUPERSEDED")
                    board.end(STOP_REQUESTED)
                    # Before connections are cut: an answer says that nothing comes.
                    control.close()
                    tell_serving(runtime.home, serving=False)
                    await interface.end()
                    serving.cancel_scope.cancel()
        finally:
            if board.now.ending is None and board.failure is None:
                # Whose failure it was is known once all that depends on it has ended.
                board.fail(FAILED, ForgeError("a part of it failed"), None)
            control.close()
            await entrance.cut()

    async def _become_ready(
        self, runtime: Runtime, entrance: Entrance, nursery: trio.Nursery
    ) -> Interface:
        board, mcp = self._board, self._mcp
        assert mcp is not None, "it is made as soon as there are settings"
        try:
            board.enter("transport")
            interface = Interface(runtime, entrance, mcp, self._place, self._herald)
            await interface.open(nursery)
            tell_serving(runtime.home, serving=True)
            board.enter("probe")
            await interface.probe()
            if interface.has_mcp:
                board.require("mcpEndToEnd")
                await interface.probe_as_agent()
                board.observe("mcpEndToEnd", "pass")
            _spare_collector()
            board.enter("ready")
            self._start.done = True
        except Exception as error:
            board.fail_start(error)
            raise
        return interface

    async def _look_on_signal(
        self, signals: AsyncIterator[int], runtime: Runtime, entrance: Entrance
    ) -> None:
        """A hang-up asks to look at what is outside: the sockets, the file of the
        log, and the settings."""
        async for _ in signals:
            entrance.check()
            service_log.reopen()
            if self._mcp is not None:
                self._mcp.check()
            self._notifier.reloading()
            try:
                changes = await runtime.control.reload_settings()
            except ForgeError as error:
                log.error("the settings were not reloaded: %s", error)
            else:
                told = ", ".join(f"{c.name} {c.old!r} -> {c.new!r}" for c in changes)
                log.info("the settings were reloaded: %s", told or "nothing changed")
            self._notifier.ready(self._board.now.doing)


class Start:
    """The start of a service, which a request to stop cuts short."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self.scope = trio.CancelScope()
        self.done = False
        self.stop = trio.Event()
        #: Where those wait who want to be answered.
        self.entrance: Entrance | None = None

    def request_stop(self, reason: str = STOP_REQUESTED) -> None:
        self._board.end(reason)
        self.stop.set()
        if not self.done:
            if self.entrance is not None:
                self.entrance.refuse()
            self.scope.cancel()


async def _stop_on_signal(
    signals: AsyncIterator[int], start: Start, scope: trio.CancelScope
) -> None:
    """The first signal asks for an orderly stop, the second cuts requests short."""
    start.request_stop(f"SIGNAL_{signal.Signals(await anext(signals)).name}")
    await anext(signals)
    scope.cancel()


def _spare_collector() -> None:
    """Let the collector of cycles work less, as it hardly ever finds one here.

    What is there now stays, so it need not be looked through again; and most of what
    is made later lives until the next commit, longer than 700 objects take.
    """
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
    gc.enable()
