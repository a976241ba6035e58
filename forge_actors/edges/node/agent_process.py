"""One process of the node agent, seen from the service."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import trio

from forge_actors.domain.errors import LauncherDown
from forge_actors.edges.node import agent, wire

_PROGRAM = Path(agent.__file__).with_name("__main__.py")

#: Seconds an agent may take until it is ready; it needs a few hundredths of one.
_START_LIMIT = 10.0


class AgentProcess:
    """The process, the socket to it, and what it said of itself.

    `journal` is the file of its receipts, `boot_id` and `namespace` are parts of every
    identity.
    """

    def __init__(self, process: subprocess.Popen[bytes], sock: socket.socket) -> None:
        self.process = process
        self.socket = sock
        self.boot_id = ""
        self.namespace = 0
        self.journal = Path()

    @classmethod
    async def start(cls, home: Path, hello: bytes) -> AgentProcess:
        """Start an agent, say hello to it, and wait until it is ready.

        Raises:
            LauncherDown: it ended instead, or took longer than 10 s.
        """
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            started = cls(_start_process(home, theirs.fileno()), ours)
        try:
            with trio.fail_after(_START_LIMIT):
                await started._say(hello)
                await started._wait_until_ready(home)
        except BaseException as error:
            ours.close()
            started.process.kill()
            started.process.wait()
            if isinstance(error, trio.TooSlowError):
                message = f"the node agent was not ready within {_START_LIMIT:g} s"
                raise LauncherDown(message) from None
            raise
        return started

    async def _say(self, line: bytes) -> None:
        data = line + b"\n"
        while data:
            try:
                data = data[self.socket.send(data) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self.socket)
            except OSError:
                return  # it has ended: the reader tells why

    async def _wait_until_ready(self, home: Path) -> None:
        await trio.lowlevel.wait_readable(self.socket)
        # The first message is sent alone, and far smaller than a socket's buffer.
        try:
            line = self.socket.recv(4096)
        except ConnectionResetError:
            line = b""
        if not line:
            reason = f"see {home / 'agent.log'}"
            if os.statvfs(home).f_bavail == 0:  # so that it could not say so there
                reason = f"no space is left on the disk of {home}"
            raise LauncherDown(f"the node agent ended at its start; {reason}")
        (ready,) = wire.decode_lines(line)
        assert isinstance(ready, wire.Ready)
        self.boot_id = ready.boot_id
        self.namespace = ready.namespace
        self.journal = home / "receipts" / f"{ready.instance}.jsonl"

    def hang_up(self) -> None:
        """Say that nothing more comes: the agent ends everything, then itself."""
        with contextlib.suppress(OSError):  # it is gone already
            self.socket.shutdown(socket.SHUT_WR)

    async def wait(self) -> None:
        """Until the process has ended."""
        await trio.to_thread.run_sync(self.process.wait, abandon_on_cancel=True)


def _start_process(home: Path, fd: int) -> subprocess.Popen[bytes]:
    with open(home / "agent.log", "ab", opener=_private) as log:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", _PROGRAM, "--fd", str(fd), "--home", home],
            pass_fds=[fd],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd=home,
            start_new_session=True,  # an interrupt at the terminal is ours alone
        )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
