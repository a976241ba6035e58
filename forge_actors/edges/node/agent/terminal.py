"""A terminal for a job that asks for one. Nobody types on it.

Whoever reads from it finds the end of the file, as often as it tries, also a program
that throws typed keys away before it asks for a password, or that switches to reading
single keys. The terminal itself adds nothing to the output and echoes nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import termios
from fcntl import ioctl

COLUMNS, LINES = 80, 24
#: What the job's terminal is called in its environment, unless that names one.
TERM = b"xterm-256color"
#: How often the end of the file waits to be read; the system holds 4,095 at most.
_ENDS = b"\x04" * 512

_OUTPUT, _LOCAL = 1, 3  # places in what tcgetattr returns


class Terminal:
    """The agent's side. `read` is used in place of `os.read`."""

    def __init__(self) -> None:
        """Make one.

        Raises:
            OSError: the system has no more terminals.
        """
        self.fd, self.job_side = os.openpty()
        modes = termios.tcgetattr(self.job_side)
        modes[_OUTPUT] &= ~termios.ONLCR
        modes[_LOCAL] &= ~termios.ECHO
        termios.tcsetattr(self.job_side, termios.TCSANOW, modes)
        size = struct.pack("HHHH", LINES, COLUMNS, 0, 0)
        ioctl(self.job_side, termios.TIOCSWINSZ, size)
        # From now on the first byte of each read tells what happened to the terminal.
        ioctl(self.fd, termios.TIOCPKT, struct.pack("i", 1))
        os.set_blocking(self.fd, False)
        self._by_line = True
        self._type_end()

    def release(self) -> None:
        """Hold it no longer for the job, whose leader has ended.

        Until then it is held: with nobody on its side a terminal hangs up, and the
        system ends a session that only closed its streams.
        """
        if self.job_side >= 0:
            os.close(self.job_side)
            self.job_side = -1

    def close(self) -> None:
        self.release()
        os.close(self.fd)

    def read(self, fd: int, size: int) -> bytes:
        """Output of the job; empty once nobody has the terminal any more.

        Raises:
            BlockingIOError: there is none now.
        """
        while True:
            try:
                data = os.read(fd, size)
            except OSError as error:
                if error.errno == errno.EIO:
                    return b""
                raise
            if not data:
                return b""
            if data[0]:
                if data[0] & termios.TIOCPKT_FLUSHREAD:
                    self._type_end()
                continue
            self._look_at_modes(fd)
            if len(data) > 1:
                return data[1:]

    def _look_at_modes(self, fd: int) -> None:
        """A program that begins to read single keys sees what was typed as zeros."""
        by_line = bool(termios.tcgetattr(fd)[_LOCAL] & termios.ICANON)
        if self._by_line and not by_line:
            self._type_end()
        self._by_line = by_line

    def _type_end(self) -> None:
        # As much as it holds is there already, otherwise.
        with contextlib.suppress(BlockingIOError):
            os.write(self.fd, _ENDS)


def take_control() -> None:
    """Make stdin the terminal of this session; in the child, before its program."""
    ioctl(0, termios.TIOCSCTTY, 0)
