"""A terminal for programs that draw: what is on its screen, and how they leave it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.bench import PATIENCE
from tests.acceptance.service import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

pyte: Any = pytest.importorskip("pyte", reason="NOT RUN: pyte is not installed")

COLUMNS, LINES = 80, 24
UP, DOWN, ESCAPE = "\x1b[A", "\x1b[B", "\x1b"


class Terminal:
    """A program of ours on a terminal of 80 columns and 24 lines."""

    def __init__(
        self, *words: str, program: Sequence[str] = (PROGRAM,), **environ: str
    ) -> None:
        self.screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self.screen)
        #: All that it printed.
        self.printed = b""
        self._ours, self._its = pty.openpty()
        self.resize(COLUMNS, LINES)
        self.before = termios.tcgetattr(self._its)
        known = {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
        # The size is that of the terminal, whatever whoever started us has exported.
        unset = ("NO_COLOR", "COLORTERM", "COLUMNS", "LINES")
        inherited = {k: v for k, v in os.environ.items() if k not in unset}
        self.child = subprocess.Popen(
            [*program, *words],
            stdin=self._its,
            stdout=self._its,
            stderr=self._its,
            env={**inherited, **known, **environ},
            preexec_fn=self._control,  # noqa: PLW1509 - a child of one thread
        )

    def _control(self) -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    # -- what it shows -----------------------------------------------------------------

    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    def text(self) -> str:
        return "\n".join(self.lines())

    def until(self, *wanted: str | Callable[[str], bool]) -> str:
        """Read on until all of these are to be seen; the whole screen.

        What is drawn comes piece by piece: one thing is there before the next one.
        """
        end = monotonic() + PATIENCE

        def seen() -> bool:
            text = self.text()
            return all(
                what in text if isinstance(what, str) else what(text) for what in wanted
            )

        while not seen():
            left = end - monotonic()
            assert left > 0, f"{wanted!r} do not appear on\n{self.text()}"
            if not self.read(left):
                break
        assert seen(), f"it ended without {wanted!r} on\n{self.text()}"
        return self.text()

    def read(self, seconds: float) -> bool:
        """Take what it prints next; False if it prints no more."""
        if not select.select([self._ours], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._ours, 65536)
        except OSError:
            return False
        self.printed += data
        self._stream.feed(data)
        return bool(data)

    # -- what is done with it ----------------------------------------------------------

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, size)
        self.screen.resize(lines, columns)

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self._its)

    def stopped(self) -> None:
        """Wait until it is stopped, as by Ctrl-Z."""
        _, status = os.waitpid(self.child.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def ended(self) -> int:
        """Its exit status; and that it left the terminal as it was."""
        end = monotonic() + PATIENCE
        while self.child.poll() is None:
            assert monotonic() < end, f"it does not end\n{self.text()}"
            self.read(0.05)
        while select.select([self._ours], [], [], 0)[0] and self.read(0):
            pass
        assert self.settings() == self.before
        if b"\x1b[?1049h" in self.printed:
            last = {mode: self.printed.rfind(mode) for mode in _MODES}
            assert last[b"\x1b[?1049l"] > last[b"\x1b[?1049h"], "it keeps the screen"
            assert last[b"\x1b[?25h"] > last[b"\x1b[?25l"], "the cursor is hidden"
        return self.child.returncode

    def close(self) -> None:
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
            self.child.send_signal(signal.SIGCONT)
        self.child.wait()
        os.close(self._ours)
        os.close(self._its)


_MODES = (b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?25l")
