"""What tests of real processes are given: places, gates, bells, and who is still there.

Every test that starts processes gives them a *marker*, an odd number of seconds to
sleep, so that `survivors` can tell afterwards which of them are still there.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from tests.processes import command_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Longest that something may take which a test waits for.
PATIENCE = 60.0

_numbers = itertools.count(1)


def marker() -> str:
    """A number of seconds that no other process on this machine sleeps for."""
    return f"4711.{os.getpid():07d}{next(_numbers):04d}"


def survivors(mark: str) -> list[str]:
    """The processes whose command line has the marker, as `pid words`."""
    found = []
    for pid, words in command_lines():
        if mark.encode() in words:
            text = words.replace(b"\0", b" ").decode(errors="replace")
            found.append(f"{pid} {text}")
    return found


def gather(mark: str, count: int) -> list[str]:
    """The same, as soon as there are so many; the limit of the test is that of the
    wait. What a shell has begun looks like the shell until it is another program."""
    while len(found := survivors(mark)) != count:
        os.sched_yield()
    return found


def contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """The files below a folder and what is in each; some may go while we read."""
    for place, _, names in os.walk(folder):
        for path in (Path(place, name) for name in names):
            content = None
            with contextlib.suppress(FileNotFoundError):
                content = path.read_bytes() if path.is_file() else None
            if content is not None:
                yield path, content


def wait_until_ended(pid: int, seconds: float = PATIENCE) -> bool:
    """Wait for the end of a process, of whomever it is a child."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(fd)


def wait_for_words(file: Path, words: str) -> None:
    """Wait until a line of a file that grows has these words."""
    follow = ["tail", "-n", "+1", "-f", str(file)]
    with subprocess.Popen(follow, stdout=subprocess.PIPE) as lines:
        try:
            assert lines.stdout is not None
            assert any(words.encode() in line for line in lines.stdout)
        finally:
            lines.kill()


def resident_kib(pid: int, name: str = "VmRSS") -> int:
    """A line of /proc/PID/status: VmRSS now, VmHWM at its highest."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    [line] = [line for line in lines if line.startswith(f"{name}:")]
    return int(line.split()[1])


class Gate:
    """A FIFO that jobs read to be blocked until the test opens it, for good."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        # Held for writing too: whoever opens it comes in at once, and reads nothing.
        self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        #: The shell command of a job that waits at the gate.
        self.wait = f"cat {path}"

    def open(self) -> None:
        """Let everybody through, also those that come later."""
        if self._fd < 0:
            return
        plain = self.path.with_suffix(".open")
        plain.touch()
        plain.replace(self.path)
        os.close(self._fd)
        self._fd = -1


class Bell:
    """A FIFO that jobs write a line to; the test waits for it."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        #: The shell command that rings it.
        self.ring = f"echo x > {path}"

    def wait(self, rings: int = 1, seconds: float = PATIENCE) -> None:
        deadline = monotonic() + seconds
        while rings > 0:
            left = deadline - monotonic()
            ready, _, _ = select.select([self._fd], [], [], max(0.0, left))
            assert ready, "a job did not say in time that it was there"
            rings -= os.read(self._fd, rings * 2).count(b"\n")

    def close(self) -> None:
        os.close(self._fd)


class Bench:
    """A place for the files of one test; leaving it removes them."""

    def __init__(self) -> None:
        # Not pytest's: its long path would move the socket elsewhere.
        self.root = Path(tempfile.mkdtemp(prefix="fa-")).resolve()
        self._gates: list[Gate] = []
        self._bells: list[Bell] = []
        self._markers: list[str] = []

    def gate(self) -> Gate:
        gate = Gate(self.root / f"gate{len(self._gates)}")
        self._gates.append(gate)
        return gate

    def bell(self) -> Bell:
        bell = Bell(self.root / f"bell{len(self._bells)}")
        self._bells.append(bell)
        return bell

    def marker(self) -> str:
        self._markers.append(marker())
        return self._markers[-1]

    def git(self, *words: str | Path) -> None:
        subprocess.run(
            ["git", *map(str, words)], check=True, capture_output=True, cwd=self.root
        )

    def repository(self, name: str) -> Path:
        """A git repository with one commit."""
        place = self.root / name
        self.git("init", "--quiet", "--initial-branch=main", place)
        self.git("-C", place, "commit", "--quiet", "--allow-empty", "-m", "first")
        return place

    def close(self) -> None:
        for gate in self._gates:
            gate.open()
        for bell in self._bells:
            bell.close()
        for mark in self._markers:
            for line in survivors(mark):
                kill(int(line.split()[0]))
        shutil.rmtree(self.root, ignore_errors=True)


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
