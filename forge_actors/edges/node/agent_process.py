"""One process of the node agent, seen from the service, and the connection to it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import trio

from forge_actors.domain.errors import LauncherDown
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.edges.node import agent, wire
from forge_actors.edges.node.agent import tree
from forge_actors.edges.node.agent_lock import wait_for_end

if TYPE_CHECKING:
    from pathlib import Path

_PROGRAM = os.path.join(os.path.dirname(agent.__file__), "__main__.py")

#: Seconds an agent may take until it is ready; it needs a few hundredths of one.
ANSWER_LIMIT = 10.0

# Larger than the threshold of malloc, each read would map and unmap memory.
_RECEIVE_SIZE = 64 * 1024


class NotServed(Exception):
    """The agent does not serve us; see `wire.Unwelcome`."""

    def __init__(self, unwelcome: wire.Unwelcome) -> None:
        super().__init__(unwelcome.reason)
        self.code = unwelcome.code


class HungUp(Exception):
    """The agent ended, or at least the connection to it."""


class AgentProcess:
    """The process, the socket to it, and what it said of itself.

    `process` is None for one that an earlier service has started, and was `found`.
    """

    def __init__(
        self,
        home: Path,
        sock: socket.socket,
        process: subprocess.Popen[bytes] | None = None,
        found: tree.Process | None = None,
    ) -> None:
        one = process or found
        assert one is not None
        self.pid = one.pid
        self.process = process
        self._found = found
        self.socket = sock
        #: What it said at first; then what it said since, until somebody reads on.
        self.ready: wire.Ready
        self.news: list[wire.Event] = []
        #: The beginning of a line.
        self.partial = b""
        self._home = home

    @property
    def journal(self) -> Path:
        return self._home / "receipts" / f"{self.ready.instance}.jsonl"

    def identity(self, started: wire.Started) -> ProcessIdentity:
        boot_id, namespace = self.ready.boot_id, self.ready.namespace
        return ProcessIdentity(boot_id, started.pid, started.start_ticks, namespace)

    @classmethod
    async def start(
        cls, home: Path, hello: wire.Hello, listen: str | None = None
    ) -> AgentProcess:
        """Start an agent, and wait until it is ready. With `listen` it outlives us.

        Raises:
            LauncherDown: it ended instead, or took longer than 10 s.
        """
        try:
            ours, process = _start_connected(home, listen)
        except OSError as error:
            message = f"the node agent could not be started: {error.strerror}"
            raise LauncherDown(message) from None
        started = cls(home, ours, process)
        try:
            with trio.fail_after(ANSWER_LIMIT):
                await started.greet(hello)
        except BaseException as error:
            ours.close()
            process.kill()
            process.wait()
            if isinstance(error, trio.TooSlowError):
                message = f"the node agent was not ready within {ANSWER_LIMIT:g} s"
                raise LauncherDown(message) from None
            if isinstance(error, HungUp):
                raise LauncherDown(
                    f"the node agent ended at its start; {_why_ended(home)}"
                ) from None
            if isinstance(error, NotServed):
                message = f"the node agent could not begin: {error}"
                raise LauncherDown(message) from None
            raise
        return started

    async def greet(self, hello: wire.Hello) -> None:
        """Say hello, and read what is told at first.

        Raises:
            NotServed, HungUp: it ends with that.
            LauncherDown: it speaks another language.
        """
        await self._say(wire.encode(hello) + b"\n")
        missing = -1
        while missing:
            for event in await self.read():
                if isinstance(event, wire.Unwelcome):
                    raise NotServed(event)
                if isinstance(event, wire.Ready):
                    self.ready = event
                    missing = event.outstanding
                else:
                    missing -= isinstance(event, wire.Exited) and missing > 0
                    self.news.append(event)

    async def _say(self, data: bytes) -> None:
        while data:
            try:
                data = data[self.socket.send(data) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self.socket)
            except OSError:
                return  # it has ended: the reader tells why

    async def read(self) -> list[wire.Event]:
        """What it says next, at least a part of a message.

        Raises:
            HungUp: nothing more comes.
            LauncherDown: it speaks another language.
        """
        await trio.lowlevel.wait_readable(self.socket)
        try:
            data = self.socket.recv(_RECEIVE_SIZE)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            raise HungUp
        lines, newline, self.partial = (self.partial + data).rpartition(b"\n")
        if not newline:
            return []
        try:
            return wire.decode_lines(lines)
        except (msgspec.DecodeError, RecursionError) as error:
            raise LauncherDown(
                f"the node agent (pid {self.pid}) is not understood: {error}"
            ) from None

    def hang_up(self) -> None:
        """Say that nothing more comes."""
        with contextlib.suppress(OSError):  # it is gone already
            self.socket.shutdown(socket.SHUT_WR)

    def signal(self, number: int) -> None:
        """Signal exactly this process, if it is there."""
        if self.process is not None:
            self.process.send_signal(number)
            return
        assert self._found is not None
        tree.send(self._found, number)

    def let_go(self) -> None:
        """Leave it alone from now on, dead or alive."""
        self.socket.close()
        if self.process is not None:
            self.process.poll()
            # Otherwise Popen complains that we did not wait for it.
            self.process.returncode = self.process.returncode or 0

    @property
    def idle(self) -> bool:
        """It runs nothing, and waits to run nothing."""
        return not self.ready.running and not self.ready.held

    async def retire(self) -> None:
        """Tell one that is idle to end."""
        await self._say(wire.encode(wire.Quit()) + b"\n")
        self.socket.close()

    async def end(self) -> None:
        """Kill it, if it lives still, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        await self.wait()
        self.socket.close()

    async def wait(self) -> None:
        """Until the process has ended."""
        if self.process is not None:
            await trio.to_thread.run_sync(self.process.wait, abandon_on_cancel=True)
        else:
            await wait_for_end(self._home)


def _start_connected(
    home: Path, listen: str | None
) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with theirs:
        try:
            return ours, _start_process(home, theirs.fileno(), listen)
        except BaseException:
            ours.close()
            raise


def _start_process(
    home: Path, fd: int, listen: str | None = None
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-S", _PROGRAM]
    command += ["--fd", str(fd), "--home", str(home)]
    if listen is not None:
        command += ["--listen", listen]
    with open(home / "agent.log", "ab", opener=_private) as log:
        return subprocess.Popen(
            command,
            pass_fds=[fd],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd=home,
            start_new_session=True,  # an interrupt at the terminal is ours alone
        )


def _why_ended(home: Path) -> str:
    if os.statvfs(home).f_bavail == 0:  # so that it could not say so there
        return f"no space is left on the disk of {home}"
    return f"see {home / 'agent.log'}"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
