"""Services forked from a process that has loaded the program already.

Loading it is most of the work of a start, and tests start services by the hundred. What
`serve --detach` does and waits for is done as ever; only the interpreter is not a new
one. What is about the start of the program itself calls the command line instead.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from unittest import mock

from forge_actors.cli import serve

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: Forks once for each message: its arguments, its environment, and its files: standard
#: input, output and error, and the one whose number the arguments leave open.
_PROGRAM = """
import json, os, signal, socket, sys, time
from forge_actors.cli import main, serve
from forge_actors.edges.cleanup import process
import forge_actors.runtime.service

# Where tests keep all of the machine busy, the last in line waits for ever.
process._put_last_in_line = lambda pid: None

def become(wanted, fds):
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    *streams, ready = fds
    for place, fd in enumerate(streams):
        os.dup2(fd, place)
        os.close(fd)
    asked.close()
    os.environ.clear()
    os.environ.update(wanted["env"])
    time.tzset()
    os.umask(wanted["umask"])
    os.chdir(wanted["cwd"])
    sys.argv = [str(ready) if word == "READY" else word for word in wanted["argv"]]
    sys.exit(main.main(sys.argv[1:]))

signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
asked = socket.socket(fileno=int(sys.argv[1]))
while True:
    text, fds, *_ = socket.recv_fds(asked, 1 << 20, 4)
    if not text:
        break
    child = os.fork()
    if child == 0:
        become(json.loads(text), fds)
    for fd in fds:
        os.close(fd)
    asked.send(str(child).encode())
"""


def start(home: Path) -> int:
    """As `serve --detach` starts a service of a home; its pid."""
    with mock.patch.object(serve, "subprocess", _Forking):
        return serve.start_detached(home)


def is_possible() -> bool:
    """What the interpreter was told when it began is the same for all of them."""
    return _told() == _begun()[1]


def _told() -> dict[str, str]:
    return {name: os.environ[name] for name in os.environ if name.startswith("PYTHON")}


@functools.cache
def _begun() -> tuple[socket.socket, dict[str, str]]:
    """The process that has loaded the program; it ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-P", "-c", _PROGRAM, str(theirs.fileno())]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
    )
    theirs.close()
    process.returncode = 0  # nobody waits for it
    atexit.register(ours.close)
    return ours, _told()


class _Forking:
    """In place of the module that starts processes."""

    DEVNULL = subprocess.DEVNULL

    class Popen:
        def __init__(
            self, command: Sequence[str], *, pass_fds: list[int], stdout: Any, **_: Any
        ) -> None:
            asked, _told = _begun()
            os.umask(umask := os.umask(0o022))
            words = command[command.index("forge_actors") :]
            wanted = {
                "argv": [
                    "READY" if word == str(pass_fds[0]) else word for word in words
                ],
                "env": dict(os.environ),
                "umask": umask,
                "cwd": os.getcwd(),
            }
            nothing = os.open(os.devnull, os.O_RDONLY)
            fds = [nothing, stdout.fileno(), stdout.fileno(), pass_fds[0]]
            socket.send_fds(asked, [json.dumps(wanted).encode()], fds)
            os.close(nothing)
            self.pid = int(asked.recv(99))

        def terminate(self) -> None:
            os.kill(self.pid, signal.SIGTERM)

        def wait(self) -> int:
            with contextlib.suppress(ProcessLookupError):
                fd = os.pidfd_open(self.pid)
                select.select([fd], [], [])
                os.close(fd)
            return 1  # its own log says more
