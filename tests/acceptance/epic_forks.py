"""Calls of `forge-actors epic`, each a process that is forked from one which has loaded
the program already: that is most of the work of a call.

What such a call does, how it is ended and what it leaves is as ever. A test may have
something in its program changed, so that it is killed at a certain point.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from tests.acceptance.bench import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: Forks once for each message: what to do, and standard input, output, error, and where
#: to tell the pid and then the status. Between it and the call is one that waits.
_PROGRAM = """
import json, os, signal, socket, sys, time
from forge_actors.cli import epic, epic_text, epic_view, main
from forge_actors.runtime import epic_looks, epic_run, epic_settings

def become(wanted, fds):
    os.setsid()
    for place, fd in enumerate(fds):
        os.dup2(fd, place)
        os.close(fd)
    # What they were when it was loaded is remembered in the old ones.
    sys.stdout, sys.stderr = (
        open(fd, "w", buffering=1, encoding="utf-8", closefd=False) for fd in (1, 2)
    )
    asked.close()
    os.environ.clear()
    os.environ.update(wanted["env"])
    os.chdir(wanted["cwd"])
    sys.argv = ["forge-actors", *wanted["words"]]
    exec(wanted["changed"], globals())
    sys.exit(main.main(sys.argv[1:]))

def follow(wanted, fds):
    *streams, told = fds
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        os.close(told)
        become(wanted, streams)
    for fd in streams:
        os.close(fd)
    os.write(told, b"%d\\n" % child)
    _, status = os.waitpid(child, 0)
    os.write(told, b"%d\\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
asked = socket.socket(fileno=int(sys.argv[1]))
while True:
    text, fds, *_ = socket.recv_fds(asked, 1 << 20, 4)
    if not text:
        break
    if os.fork() == 0:
        follow(json.loads(text), fds)
    for fd in fds:
        os.close(fd)
"""


@functools.cache
def _begun() -> socket.socket:
    """To the process that has loaded the program; it ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-P", "-c", _PROGRAM, str(theirs.fileno())]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
    )
    theirs.close()
    process.returncode = 0  # nobody waits for it
    atexit.register(ours.close)
    return ours


class Call:
    """One call that goes on, or has ended."""

    def __init__(
        self,
        words: Sequence[str],
        cwd: Path,
        *,
        changed: str = "",
        stream: int | None = None,
        environ: Mapping[str, str],
    ) -> None:
        """`changed`: statements that are run in it before the program; `stream`: what
        it has for all three, in place of pipes."""
        #: The lines that it wrote to its standard error, as far as was read.
        self.lines: list[str] = []
        self._rest = b""
        self._out, out = os.pipe()
        self._err, err = os.pipe()
        self._told, told = os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        streams = [nothing, out, err] if stream is None else [stream] * 3
        wanted = {
            "words": list(words),
            "cwd": str(cwd),
            "env": {**os.environ, **environ},
            "changed": changed,
        }
        data = json.dumps(wanted).encode()
        socket.send_fds(_begun(), [data], [*streams, told])
        for fd in (nothing, out, err, told):
            os.close(fd)
        self.pid = int(self._line())
        self._status: int | None = None

    def _line(self) -> bytes:
        """What it is told by whoever waits for it. The next line may be there too."""
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self._told], [], [], PATIENCE)
            assert ready, f"it goes on after {self.lines}"
            letter = os.read(self._told, 1)
            assert letter, f"nobody waits for it after {self.lines}"
            line += letter
        return line

    def until(self, *words: str) -> str:
        """Read on until there is a line that has all of these words; that line."""
        end = monotonic() + PATIENCE
        seen = 0
        while True:
            for line in self.lines[seen:]:
                if all(word in line for word in words):
                    return line
            seen = len(self.lines)
            read = self._next(end - monotonic())
            assert read is not None, f"it ended without {words}: {self.lines}"

    def _next(self, seconds: float) -> str | None:
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._err], [], [], max(0.0, seconds))
            assert ready, f"no more lines came after {self.lines}"
            data = os.read(self._err, 1 << 16)
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        self.lines.append(line.decode())
        return self.lines[-1]

    def wait(self) -> int:
        """Its status, minus the signal that has ended it."""
        if self._status is None:
            while self._next(PATIENCE) is not None:
                pass
            self._status = int(self._line())
        return self._status

    @property
    def err(self) -> str:
        """All that it wrote to its standard error."""
        self.wait()
        return "\n".join(self.lines)

    @functools.cached_property
    def out(self) -> str:
        self.wait()
        with open(self._out, closefd=False) as file:
            return file.read()

    def send(self, number: int) -> None:
        os.kill(self.pid, number)

    def close(self) -> None:
        if self._status is None:
            with suppress(ProcessLookupError):
                self.send(signal.SIGKILL)
            self.wait()
        for fd in (self._out, self._err, self._told):
            os.close(fd)
