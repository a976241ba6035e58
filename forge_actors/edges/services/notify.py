"""What a service manager is told: systemd's protocol, one datagram a message."""

from __future__ import annotations

import os
import socket
from time import clock_gettime_ns
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import MutableMapping

#: Characters of a message that is shown of a service.
MAX_STATUS = 512
#: Seconds by which each sign of a start that goes on puts off the end of its time.
MORE_TIME = 30


class Notifier:
    """Tells the manager that started this process, if one did and wants to know."""

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        """Take what it is told by out of the environment: it is not for children."""
        address = environ.pop("NOTIFY_SOCKET", "")
        period, pid = environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        mine = pid in ("", str(os.getpid()))
        self._doing = ""
        #: Seconds within which it is to hear that all is well; None: it need not.
        self.watchdog: float | None = None
        if address and mine and period.isdecimal() and int(period) > 0:
            self.watchdog = int(period) / 1e6

    def starting(self, doing: str) -> None:
        """A start goes on: what it does now."""
        if doing == self._doing:
            return
        self._doing = doing
        self._send(_status(doing), f"EXTEND_TIMEOUT_USEC={MORE_TIME * 1_000_000}")

    def ready(self, status: str) -> None:
        self._send("READY=1", _status(status))

    def status(self, status: str) -> None:
        self._send(_status(status))

    def reloading(self) -> None:
        """The settings are read again; `ready` ends this."""
        now = clock_gettime_ns(1) // 1000  # CLOCK_MONOTONIC
        self._send("RELOADING=1", f"MONOTONIC_USEC={now}")

    def stopping(self, status: str) -> None:
        self._send("STOPPING=1", _status(status))

    def alive(self) -> None:
        self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC
        with socket.socket(socket.AF_UNIX, kind) as sender:
            sender.setblocking(False)
            try:
                sender.sendto("\n".join(lines).encode(), self._address)
            except OSError:
                return  # whoever does not listen need not be told


def _status(text: str) -> str:
    return f"STATUS={' '.join(text.split())[:MAX_STATUS]}"
