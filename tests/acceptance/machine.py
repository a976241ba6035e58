"""What processes use of the machine."""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic

from tests.acceptance.bench import PATIENCE


def descriptors(pid: int) -> int:
    """How many files a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def closes_to(pid: int, most: int) -> bool:
    """Whether a process soon has no more files open: it hears of the end of a client
    after the client itself."""
    deadline = monotonic() + PATIENCE
    while descriptors(pid) > most:
        if monotonic() > deadline:
            return False
        os.sched_yield()
    return True


def cpu_ticks(pid: int) -> int:
    """Hundredths of a second that a process has computed so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def written(pid: int) -> int:
    """Bytes that a process has written to files so far; sockets do not count."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    [line] = [line for line in lines if line.startswith("wchar:")]
    return int(line.split()[1])
