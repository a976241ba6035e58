"""W2: from the submit call to the first instruction of the job, on an idle system."""

from __future__ import annotations

import contextlib
import math
import os
import statistics
import time
from typing import TYPE_CHECKING

from benchmarks.cref import compile_c
from benchmarks.rows import Bench, Sample
from benchmarks.service import running_service
from benchmarks.w1 import wait_for, wait_request
from benchmarks.wire import request

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from benchmarks.service import Service

PAUSE = 0.01  # lets lazy work of the last job end: the system is idle again


def measure(bench: Bench) -> Iterable[Sample]:
    """One job at a time says through a FIFO that it runs."""
    fifo = bench.folder / "started"
    argv, how = announcing(bench.folder, fifo)
    with running_service(bench.folder) as service, announced(fifo) as line:
        bench.saw(service)
        (name,) = service.add_repositories(bench.checkouts[:1])
        times = line.starts(service, name, argv, bench.starts + 1)
    times = times[1:]  # the first one warms the repository up
    note = f"{len(times)} jobs, one at a time, {how}"
    yield Sample("w2-median", statistics.median(times) * 1000, "ms", note)
    yield Sample("w2-p99", percentile(times, 0.99) * 1000, "ms", note)
    with announced(fifo) as line:
        bare = statistics.median(line.spawns(argv, bench.starts))
    yield Sample("w2-spawn", bare * 1000, "ms", "a bare posix_spawn of that program")


class Line:
    """The FIFO through which jobs say that they run."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def begun(self) -> float:
        """When the next job said so."""
        os.read(self._fd, 1)
        return time.perf_counter()

    def starts(
        self, service: Service, repo: str, argv: Sequence[str], count: int
    ) -> list[float]:
        """Seconds from each submit call to the first byte of its job."""
        submit = request("POST", "/v1/jobs", {"jobs": [{"repo": repo, "argv": argv}]})
        times = []
        with service.client() as client:
            for _ in range(count):
                begin = time.perf_counter()
                accepted = client.send(submit)
                times.append(self.begun() - begin)
                ids = [job["id"] for job in accepted.result()["jobs"]]
                wait_for(client, wait_request(ids), begin)
                time.sleep(PAUSE)
        return times

    def spawns(self, argv: list[str], count: int) -> list[float]:
        """Seconds from each bare spawn to the first byte of its program."""
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            pid = os.posix_spawn(argv[0], argv, os.environ)
            times.append(self.begun() - begin)
            os.waitpid(pid, 0)
        return times


@contextlib.contextmanager
def announced(fifo: Path) -> Iterator[Line]:
    """A FIFO for jobs that announce themselves."""
    if not fifo.exists():
        os.mkfifo(fifo)
    fd = os.open(fifo, os.O_RDWR)  # both ends: neither side waits in its open
    try:
        yield Line(fd)
    finally:
        os.close(fd)


def announcing(folder: Path, fifo: Path) -> tuple[list[str], str]:
    """A job that writes to `fifo` when it begins, and what kind of program it is."""
    program = compile_c("stamp.c", folder)
    if program is not None:
        return [str(program), str(fifo)], "a C program"
    return ["/bin/sh", "-c", 'printf ! >"$0"', str(fifo)], "a shell: no C compiler"


def percentile(values: list[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[math.ceil(len(ordered) * share) - 1]
