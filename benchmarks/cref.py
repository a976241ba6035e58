"""The yardstick: what a C program reaches that starts the same job and keeps nothing.

Rates of different runs and machines cannot be compared; their ratios to this can.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import time
from pathlib import Path

SOURCES = Path(__file__).parent


def compile_c(source: str, folder: Path) -> Path | None:
    """The program made of one of our C files, or None without a C compiler."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    program = folder / Path(source).stem
    subprocess.run(
        [*compiler.split(), "-O2", "-o", str(program), str(SOURCES / source)],
        check=True,
    )
    return program


def trivial_program() -> str:
    """The job of all rates: a program that only exits with 0."""
    found = shutil.which("true", path="/bin:/usr/bin:/run/current-system/sw/bin")
    return found or shutil.which("true") or "/bin/true"


class CReference:
    """The compiled reference. Without a C compiler every rate is None."""

    def __init__(self, folder: Path) -> None:
        self._program = compile_c("cref.c", folder)
        #: CPU seconds that each job cost, its starter's included, of every measurement.
        self.costs: list[float] = []

    @property
    def available(self) -> bool:
        return self._program is not None

    def rate(self, jobs: int, at_once: int = 4) -> float | None:
        """Jobs per second, measured now."""
        if self._program is None:
            return None
        before = _of_children()
        done = subprocess.run(
            [str(self._program), trivial_program(), str(jobs), str(at_once)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.costs.append((_of_children() - before) / jobs)
        return float(done.stdout)


def _of_children() -> float:
    """CPU seconds of the children that were waited for, and of their children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def sync_rate(folder: Path, count: int = 500) -> float:
    """Synced appends of 4 KiB per second: what the disk below `folder` allows."""
    path = folder / "sync-rate"
    page = b"\0" * 4096
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        begin = time.perf_counter()
        for _ in range(count):
            os.write(fd, page)
            os.fdatasync(fd)
        return count / (time.perf_counter() - begin)
    finally:
        os.close(fd)
        path.unlink()


def filesystem(folder: Path) -> str:
    """The type of the file system that holds `folder`; `tmpfs` makes syncs free."""
    best, kind = "", "unknown"
    path = str(folder.resolve())
    for line in Path("/proc/mounts").read_text().splitlines():
        _, place, name, *_ = line.split()
        inside = place == "/" or path == place or path.startswith(place + "/")
        if inside and len(place) >= len(best):
            best, kind = place, name
    return kind
