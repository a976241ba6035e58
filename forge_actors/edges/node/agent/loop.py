"""The one loop of the agent, and its end of the socket to the service."""

from __future__ import annotations

import select
import signal
import socket
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING

from forge_actors.edges.node.agent.handed import Handed

if TYPE_CHECKING:
    from collections.abc import Callable

NEVER = float("inf")
READ, WRITE = select.POLLIN, select.POLLOUT

#: Milliseconds. poll takes at most 24 days; a time budget may be 30.
_LONGEST_WAIT = 86_400_000
# Larger than the threshold of malloc, each read would map and unmap memory.
_RECEIVE_SIZE = 64 * 1024
#: The connection ends at a longer line. The system takes less for one command.
LONGEST_LINE = 64 << 20


class Loop:
    """Calls back when a descriptor is ready, and at the end of each turn.

    With poll, not epoll: a short job's pipes come and go with it, and telling the
    kernel of each costs more than naming the few there are in every call.
    """

    def __init__(self) -> None:
        self._poll = select.poll()
        self._callbacks: dict[int, Callable[[], None]] = {}

    def register(self, fd: int, events: int, callback: Callable[[], None]) -> None:
        """Call back from now on; what was said of this descriptor before is void."""
        self._callbacks[fd] = callback
        self._poll.register(fd, events)

    def unregister(self, fd: int) -> None:
        """Call back no more; nothing happens if it never did."""
        if self._callbacks.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def knows(self, fd: int) -> bool:
        return fd in self._callbacks

    def turn(self, due: float) -> None:
        """Wait until something is ready, at most until `due` (monotonic seconds)."""
        timeout = None
        if due != NEVER:
            timeout = ceil((due - monotonic()) * 1000)
            timeout = min(max(0, timeout), _LONGEST_WAIT)
        for fd, _ in self._poll.poll(timeout):
            # One that was called before may have closed it.
            callback = self._callbacks.get(fd)
            if callback is not None:
                callback()


class Signals:
    """Turns signals into something the loop can wait for.

    `children`, `stop` and `renew` are set when a child ended, and when SIGTERM and
    SIGHUP came.
    """

    def __init__(self, loop: Loop) -> None:
        self.children = False
        self.stop = False
        self.renew = False
        self._reader, writer = socket.socketpair()
        self._reader.setblocking(False)
        writer.setblocking(False)
        self._writer = writer
        loop.register(self._reader.fileno(), READ, self._ready)
        # Python handlers, not SIG_IGN: an ignored signal stays ignored across exec, so
        # no job could be interrupted by it. A handler is back to the default there.
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, _nothing)
        signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

    def _ready(self) -> None:
        numbers = self._reader.recv(4096)
        self.children = self.children or signal.SIGCHLD in numbers
        self.stop = self.stop or signal.SIGTERM in numbers
        self.renew = self.renew or signal.SIGHUP in numbers


def _nothing(_number: int, _frame: object) -> None:
    pass


class Channel:
    """Lines to and from the service, over a stream socket that never blocks us."""

    def __init__(
        self, loop: Loop, sock: socket.socket, on_line: Callable[[bytes], None]
    ) -> None:
        sock.setblocking(False)
        self._loop = loop
        self._socket = sock
        self.on_line = on_line
        #: Called once when the other side ends.
        self.on_end: Callable[[], None] | None = None
        self._receive: Callable[[int], bytes] = sock.recv
        #: What comes with lines; only from a service that is served.
        self.handed: Handed | None = None
        self._partial = b""
        self._ready: list[bytes] = []
        self._unsent = b""
        #: The service will say no more: it closed its end, or it died.
        self.ended = False
        self._broken = False
        self._events = 0
        self._set_events()

    def take_descriptors(self) -> None:
        """Keep those that come, from now on."""
        if self.handed is None:
            self.handed = Handed(self._socket)
            self._receive = self.handed.receive

    @property
    def unsent(self) -> bool:
        """Messages wait for the service to read."""
        return bool(self._unsent or self._ready) and not self._broken

    def send(self, line: bytes) -> None:
        """Queue one message; `flush` sends all of a turn at once."""
        if not self._broken:
            self._ready.append(line)

    def flush(self) -> None:
        if not self._ready or self._broken:
            return
        waiting = bool(self._unsent)
        self._ready.append(b"")
        self._unsent += b"\n".join(self._ready)
        self._ready.clear()
        if not waiting:
            self._write()
            if self._unsent:
                self._set_events()

    def close_with(self, line: bytes) -> None:
        """Say this, then nothing more."""
        self.send(line)
        self.flush()
        self.close()

    def close(self) -> None:
        """Hear and say no more; what is not sent by now is lost."""
        self._broken = self.ended = True
        self._unsent = self._partial = b""
        self._ready.clear()
        self._set_events()
        self._let_go()
        self._socket.close()

    def _let_go(self) -> None:
        """Close the descriptors whose lines have not come whole."""
        if self.handed is not None:
            self.handed.close()

    def _set_events(self) -> None:
        wanted = 0 if self.ended else READ
        callback = self._readable
        if self._unsent:
            wanted |= WRITE
            callback = self._both
        if wanted != self._events:
            if self._events:
                self._loop.unregister(self._socket.fileno())
            if wanted:
                self._loop.register(self._socket.fileno(), wanted, callback)
            self._events = wanted

    def _both(self) -> None:
        if self._unsent:
            self._write()
            if not self._unsent:
                self._set_events()
        if not self.ended:
            self._readable()

    def _write(self) -> None:
        try:
            sent = self._socket.send(self._unsent)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            # Nobody is left to be told. The receipts are in the journal.
            self._broken = True
            sent = len(self._unsent)
        self._unsent = self._unsent[sent:]

    def _readable(self) -> None:
        try:
            data = self._receive(_RECEIVE_SIZE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            if self.ended:  # closed by what a line before said
                return
            self.on_line(line)
        if not data or len(self._partial) > LONGEST_LINE:
            # What came last was cut off, and means nothing.
            self._partial = b""
            self.ended = True
            self._let_go()
            self._set_events()
            if self.on_end is not None:
                self.on_end()
