"""The launcher: the service's side of the node agent.

One agent is the parent of all job processes of a home. It is bound to this process: it
ends everything when we go away, however we go. When it dies itself, what it had started
is found by its mark and ended, every running attempt gets a receipt that says "lost",
and a new agent takes its place.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import asynccontextmanager
from time import time
from typing import TYPE_CHECKING, NoReturn

import trio
from msgspec.structs import replace

from forge_actors.domain.errors import LauncherDown
from forge_actors.domain.launch import ProcessIdentity, Receipt
from forge_actors.edges.node import wire
from forge_actors.edges.node.agent_process import AgentProcess
from forge_actors.edges.node.attempt import Attempt
from forge_actors.edges.node.receipts import previous_receipts as previous_receipts
from forge_actors.edges.node.receipts import read_receipts
from forge_actors.edges.node.receipts import remove_receipts as remove_receipts
from forge_actors.edges.node.sweep import still_alive
from forge_actors.edges.node.sweep import sweep as sweep

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from pathlib import Path

    from msgspec import Struct

    from forge_actors.domain.launch import Ending, LaunchOrder
    from forge_actors.edges.node.attempt import Key

#: Seconds it may take to end all jobs; their graces are capped at 5 s then.
_CLOSE_LIMIT = 15.0
#: With more new agents than this in the period, seconds, nothing is started any more.
#: Receipts the agent keeps at most although they are saved; it costs one message each.
_FORGET_TOGETHER = 64
_RESTARTS, _RESTART_PERIOD = 5, 60.0

# Larger than the threshold of malloc, each read would map and unmap memory.
_RECEIVE_SIZE = 64 * 1024

_PING = wire.Ping()

_log = logging.getLogger(__name__)


@asynccontextmanager
async def open_launcher(
    home: Path, environment: Mapping[str, str] | None = None
) -> AsyncGenerator[NodeLauncher, None]:
    """Start the node agent of a home; leaving ends every job and then the agent.

    Every job gets `environment`, and what its own order adds to it or replaces.

    Raises:
        LauncherDown: it cannot be started, or one of an earlier service still runs.
    """
    home = home.absolute()
    hello = wire.encode(wire.hello(environment or {}))
    agent = await AgentProcess.start(home, hello)
    launcher = NodeLauncher(home, agent, hello)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(launcher.run)
        try:
            yield launcher
        finally:
            launcher.close()


class NodeLauncher:
    """Starts jobs through the agent; implements `domain.ports.Launcher`."""

    def __init__(self, home: Path, agent: AgentProcess, hello: bytes) -> None:
        self._home = home
        self._agent = agent
        self._hello = hello
        #: Attempts whose receipts the agent may drop, to be told together.
        self._forgotten: list[Key] = []
        #: Every attempt until it is forgotten.
        self._attempts: dict[Key, Attempt] = {}
        self._watches: dict[tuple[str, int, int], trio.Event] = {}
        self._outgoing: list[bytes] = []
        #: The rest of a line that the socket had no room for.
        self._unsent = b""
        self._idle_writer: trio.lowlevel.Task | None = None
        self._scope = trio.CancelScope(shield=True)
        self._closed = False
        #: When the agent last said something, in `trio.current_time()`.
        self._heard_at = trio.current_time()
        #: Why nothing can be started any more.
        self._down: str | None = None
        self._given_up = trio.Event()

    @property
    def agent_pid(self) -> int:
        return self._agent.process.pid

    # The port.

    def launch(self, order: LaunchOrder) -> Attempt:
        key = (order.job, order.attempt)
        known = self._attempts.get(key)
        if known is not None:
            return known
        if self._down is not None:
            raise LauncherDown(self._down)
        attempt = Attempt(self.send, key, order.fence)
        self._attempts[key] = attempt
        self._queue(wire.start_line(order))
        return attempt

    def adopt(self, job: str, attempt: int) -> Attempt | None:
        return self._attempts.get((job, attempt))

    @property
    def heard_at(self) -> float:
        return self._heard_at

    def ping(self) -> None:
        self.send(_PING)

    def forget(self, job: str, attempt: int) -> None:
        known = self._attempts.get((job, attempt))
        if known is not None and known.receipt is not None:
            del self._attempts[known.key]
            self._forgotten.append(known.key)
            if len(self._forgotten) >= _FORGET_TOGETHER:
                self._send_forgotten()

    def still_alive(
        self, identities: Sequence[ProcessIdentity]
    ) -> tuple[ProcessIdentity, ...]:
        return still_alive(identities)

    async def wait_down(self) -> NoReturn:
        """Wait until it has given up, which it does after too many dead agents.

        Raises:
            LauncherDown: always, with the reason.
        """
        await self._given_up.wait()
        raise LauncherDown(self._down)

    async def wait_output(self, job: str, attempt: int, known: int) -> None:
        running = self._attempts.get((job, attempt))
        if running is None or running.receipt is not None:
            await trio.lowlevel.checkpoint()
            return
        watch = (job, attempt, known)
        event = self._watches.get(watch)
        if event is None:
            event = self._watches[watch] = trio.Event()
            self.send(wire.Watch(job, attempt, known))
        await event.wait()

    # The conversation with the agent.

    def send(self, message: Struct) -> None:
        """Send a message, at once if the socket takes it."""
        self._queue(wire.encode(message))

    def _queue(self, line: bytes) -> None:
        if self._idle_writer is None:
            self._outgoing.append(line)
            return
        # Nothing waits, so the agent can begin while the next order is made.
        line += b"\n"
        try:
            self._unsent = line[self._agent.socket.send(line) :]
        except BlockingIOError:
            self._unsent = line
        except OSError:
            return  # the reader sees the end too, and acts on it
        if self._unsent:
            self._wake_writer()

    def _send_forgotten(self) -> None:
        if self._forgotten:
            self.send(wire.Forget(self._forgotten))
            self._forgotten = []

    def close(self) -> None:
        """Begin the end: nothing new starts, the agent ends what runs."""
        self._send_forgotten()
        self._closed = True
        self._down = self._down or "the launcher is closed"
        self._scope.deadline = trio.current_time() + _CLOSE_LIMIT
        self._wake_writer()

    async def run(self) -> None:
        """Serve one agent after the other until `close`; cancelling does not end it.

        Not, because an agent that is not listened to leaves attempts without receipt.
        `close` sets the limit.
        """
        starts: deque[float] = deque(maxlen=_RESTARTS)
        try:
            with self._scope:
                while True:
                    await self._converse()
                    if self._closed:
                        await self._agent.wait()
                        break
                    await self._bury()
                    starts.append(trio.current_time())
                    if not await self._replace(starts):
                        break
        finally:
            with trio.CancelScope(shield=True):
                await self._bury()

    async def _converse(self) -> None:
        """Until the agent hangs up."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write)
            await self._read()
            nursery.cancel_scope.cancel()
        self._outgoing.clear()
        self._unsent = b""

    async def _write(self) -> None:
        sock = self._agent.socket
        while True:
            waiting = self._outgoing or self._unsent
            if not waiting and self._closed:
                # Not before: what was forgotten last would be told again next time.
                self._agent.hang_up()
                return
            if not waiting:
                await self._wait_for_outgoing()
                continue
            self._outgoing.append(b"")
            data = self._unsent + b"\n".join(self._outgoing)
            self._outgoing.clear()
            self._unsent = b""
            while data:
                try:
                    data = data[sock.send(data) :]
                except BlockingIOError:
                    await trio.lowlevel.wait_writable(sock)
                except OSError:
                    return  # the reader sees the end too, and acts on it

    def _wake_writer(self) -> None:
        if self._idle_writer is not None:
            trio.lowlevel.reschedule(self._idle_writer)
            self._idle_writer = None

    async def _wait_for_outgoing(self) -> None:
        def abort(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            self._idle_writer = None
            return trio.lowlevel.Abort.SUCCEEDED

        self._idle_writer = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(abort)

    async def _read(self) -> None:
        sock = self._agent.socket
        partial = b""
        while True:
            await trio.lowlevel.wait_readable(sock)
            try:
                data = sock.recv(_RECEIVE_SIZE)
            except BlockingIOError:
                continue
            except OSError:
                return
            if not data:
                return
            self._heard_at = trio.current_time()
            lines, newline, partial = (partial + data).rpartition(b"\n")
            if newline:
                for event in wire.decode_lines(lines):
                    self._take(event)

    def _take(self, event: wire.Event) -> None:
        if isinstance(event, wire.Exited):
            receipt = event.receipt
            attempt = self._attempts.get((receipt.job, receipt.attempt))
            if attempt is not None:
                attempt.settle_end(receipt)
        elif isinstance(event, wire.Started):
            attempt = self._attempts.get((event.job, event.attempt))
            if attempt is not None:
                agent, pid, start = self._agent, event.pid, event.start_ticks
                attempt.settle_start(
                    ProcessIdentity(agent.boot_id, pid, start, agent.namespace)
                )
        elif isinstance(event, wire.Output):
            watch = self._watches.pop((event.job, event.attempt, event.known), None)
            if watch is not None:
                watch.set()
        elif isinstance(event, wire.Error):
            _log.warning("node agent, job %s: %s", event.job, event.problem)

    # When the agent is gone.

    async def _bury(self) -> None:
        """End what the agent left, and give every attempt it had a receipt."""
        # Whatever was launched later waits for the next agent.
        unsettled = {k: a for k, a in self._attempts.items() if a.receipt is None}
        self._agent.process.kill()
        await self._agent.wait()
        self._agent.socket.close()
        # It wrote each receipt down before it told us: some may be known only there.
        written = {(r.job, r.attempt): r for r in read_receipts(self._agent.journal)}
        for key in unsettled.keys() & written:
            if written[key].complete:
                unsettled.pop(key).settle_end(written[key])
        if unsettled:
            await self._settle_lost(unsettled, written)
        for job, number, known in list(self._watches):
            watched = self._attempts.get((job, number))
            if watched is None or watched.receipt is not None:
                self._watches.pop((job, number, known)).set()

    async def _settle_lost(
        self, lost: Mapping[Key, Attempt], written: Mapping[Key, Receipt]
    ) -> None:
        """End what is left of these; of some the command after the job was lost."""
        # Of such a command nobody was told the identity.
        leaders = {k: None if k in written else a.identity for k, a in lost.items()}
        left = await sweep(leaders)
        for key, attempt in lost.items():
            receipt = written.get(key) or _lost(attempt, complete=not left[key])
            attempt.settle_end(replace(receipt, remaining=left[key]))

    async def _replace(self, starts: deque[float]) -> bool:
        """Start the next agent, unless too many were needed lately."""
        if len(starts) == _RESTARTS and starts[-1] - starts[0] < _RESTART_PERIOD:
            self._give_up(f"the node agent ended {_RESTARTS} times within a minute")
            return False
        try:
            self._agent = await AgentProcess.start(self._home, self._hello)
        except LauncherDown as error:
            self._give_up(str(error))
            return False
        return True

    def _give_up(self, reason: str) -> None:
        """Refuse from now on; what waited for the next agent certainly never ran."""
        self._down = reason
        for attempt in self._attempts.values():
            attempt.settle_end(_without_process(attempt, "stop", reason))
        self._given_up.set()


def _lost(attempt: Attempt, *, complete: bool) -> Receipt:
    what = "what it ran was ended" if complete else "not all of it could be ended"
    return _without_process(
        attempt, "lost", f"the node agent ended unexpectedly; {what}"
    )


def _without_process(attempt: Attempt, ending: Ending, error: str) -> Receipt:
    return Receipt(
        *attempt.key,
        fence=attempt.fence,
        ending=ending,
        ended_at=time(),
        identity=attempt.identity,
        error=error,
    )
