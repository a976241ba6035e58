"""Messages to the agent: sent at once where the socket takes them, in order always."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.edges.node.descriptors import HandingLine

if TYPE_CHECKING:
    import socket


class Outbox:
    """What is to be sent. One task writes; whoever queues sends when that is idle."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        #: The rest of a line that the socket had no room for.
        self._unsent = b""
        self._socket: socket.socket | None = None
        self._writer: trio.lowlevel.Task | None = None
        self._finishing = False
        #: Of what waits, some goes with descriptors.
        self._handing = False

    def begin(self, lines: list[bytes]) -> None:
        """Drop what is queued, since the one it was for is gone, for these lines."""
        self._waiting = lines
        self._unsent = b""
        self._handing = any(isinstance(line, HandingLine) for line in lines)

    def hand(self, line: HandingLine) -> None:
        """Queue a line that goes with descriptors, after all that is queued."""
        self._waiting.append(line)
        self._handing = True
        self._wake()

    def queue(self, line: bytes) -> None:
        if self._writer is None or self._socket is None:
            self._waiting.append(line)
            return
        # Nothing waits, so the agent can begin while the next order is made.
        line += b"\n"
        try:
            self._unsent = line[self._socket.send(line) :]
        except BlockingIOError:
            self._unsent = line
        except OSError:
            return  # the reader sees the end too, and acts on it
        if self._unsent:
            self._wake()

    def finish(self) -> None:
        """Let `write` return once all that is queued is sent."""
        self._finishing = True
        self._wake()

    async def write(self, sock: socket.socket) -> None:
        """Send what is queued, until `finish`, or until the other side is gone."""
        self._socket = sock
        while True:
            waiting = self._waiting or self._unsent
            if not waiting and self._finishing:
                return
            if not waiting:
                await self._wait()
                continue
            handing = self._cut() if self._handing else None
            self._waiting.append(b"")
            data = self._unsent + b"\n".join(self._waiting)
            self._waiting.clear()
            self._unsent = b""
            if handing is not None:
                self._waiting = handing
            try:
                await _send(sock, data)
                if handing:
                    await self._send_handing(sock)
            except OSError:
                return  # the reader sees the end too, and acts on it

    def _cut(self) -> list[bytes]:
        """Take out what waits, from the first line on that goes with descriptors."""
        waiting = self._waiting
        with_some = (
            n for n, line in enumerate(waiting) if isinstance(line, HandingLine)
        )
        first = next(with_some, len(waiting))
        self._handing = first < len(waiting)
        self._waiting = waiting[:first]
        return waiting[first:]

    async def _send_handing(self, sock: socket.socket) -> None:
        """Send the first line that waits. The system ties its descriptors to its first
        byte, so they come neither before nor after it."""
        line = self._waiting.pop(0)
        assert isinstance(line, HandingLine), "it was cut there"
        while True:
            try:
                rest = line.send(sock)
                break
            except BlockingIOError:
                await trio.lowlevel.wait_writable(sock)
        await _send(sock, rest)

    def _wake(self) -> None:
        if self._writer is not None:
            trio.lowlevel.reschedule(self._writer)
            self._writer = None

    async def _wait(self) -> None:
        def abort(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            self._writer = None
            return trio.lowlevel.Abort.SUCCEEDED

        self._writer = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(abort)


async def _send(sock: socket.socket, data: bytes) -> None:
    while data:
        try:
            data = data[sock.send(data) :]
        except BlockingIOError:
            await trio.lowlevel.wait_writable(sock)
