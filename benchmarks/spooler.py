"""task-spooler on the same jobs, where it is installed: a queue that keeps nothing.

It is the fastest peer: its server has its queue in memory only, and no limit but the
number of jobs at once.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cref import trivial_program
from benchmarks.rows import Bench, Sample
from benchmarks.service import ServiceFailed, environment
from benchmarks.w2 import PAUSE, announced, announcing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: Debian calls it so: `ts` is another program there.
NAME = "tsp"
MISSING = f"skipped: there is no {NAME}; Debian has it in the package task-spooler"
PATIENCE = 120.0  # seconds
#: Ends when it has read one byte.
HOLDER = ("/bin/dd", "bs=1", "count=1", "status=none", "of=/dev/null")
#: Jobs that may wait at once: each has a connection, of which there are a thousand.
QUEUE = 900


def measure(bench: Bench) -> Iterable[Sample]:
    """Draining its queue, as with the others, and the start of one job."""
    program = shutil.which(NAME)
    if program is None:
        yield Sample("w1-spooler", None, "jobs/s", MISSING, rate=True)
        yield Sample("w2-spooler", None, "ms", MISSING)
        return
    with spooler(bench, program) as tsp:
        rate = tsp.drain(bench)
    yield Sample(
        "w1-spooler",
        rate,
        "jobs/s",
        f"{tsp.version}, in memory only, output to files;"
        f" {min(bench.jobs, QUEUE)} jobs, {bench.at_once} at once;"
        f" all queued first, after {bench.warm_up} others",
        rate=True,
    )
    with spooler(bench, program) as tsp:
        times = tsp.starts(bench)
    note = f"{len(times)} jobs, one at a time, from before its command starts"
    yield Sample("w2-spooler", statistics.median(times) * 1000, "ms", note)


@contextlib.contextmanager
def spooler(bench: Bench, program: str) -> Iterator[Spooler]:
    """A server of its own, which its first command starts; then its end."""
    tsp = Spooler(program, Path(tempfile.mkdtemp(prefix="tsp-", dir=bench.folder)))
    tsp.ask("-S", str(bench.at_once))
    try:
        yield tsp
    finally:
        tsp.ask("-K")


class Spooler:
    """The commands of one server, which writes output below `place`."""

    def __init__(self, program: str, place: Path) -> None:
        self._program, self._place = program, place
        self._surroundings = environment() | {
            "TS_SOCKET": str(place / "socket"),
            "TMPDIR": str(place),
        }
        self.version = self.ask("-V").partition(" - ")[0].strip()

    def ask(self, *words: str) -> str:
        done = subprocess.run(
            [self._program, *words],
            check=True,
            env=self._surroundings,
            cwd=self._place,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE,
            text=True,
        )
        return done.stdout

    def submit(self, argv: Sequence[str]) -> str:
        """The id of the job."""
        return self.ask(*argv).strip()

    def drain(self, bench: Bench) -> float:
        """Jobs per second, of those that were queued behind jobs that hold all slots.

        Raises:
            ServiceFailed: not all of them have ended well.
        """
        trivial = [trivial_program()]
        warm = [self.submit(trivial) for _ in range(bench.warm_up)]
        self._wait_for(warm[-bench.at_once :])
        self.ask("-C")  # its list of what has ended
        gate = self._place / "gate"
        os.mkfifo(gate)
        # Open until the end, so that a job that reads from it late finds its byte.
        holder = os.open(gate, os.O_RDWR)
        try:
            hold = [*HOLDER, f"if={gate}"]
            held = [self.submit(hold) for _ in range(bench.at_once)]
            count = min(bench.jobs, QUEUE)
            ids = [self.submit(trivial) for _ in range(count)]
            begin = time.perf_counter()
            os.write(holder, b"!" * bench.at_once)
            self._wait_for(ids[-bench.at_once :])
            self._wait_for(set(ids) - self._ended())
            seconds = time.perf_counter() - begin
            self._wait_for(held)
        finally:
            os.write(holder, b"!" * bench.at_once)
            os.close(holder)
        lost = set(ids) - self._ended()
        if lost:
            raise ServiceFailed(f"{len(lost)} of {len(ids)} jobs have not ended")
        return len(ids) / seconds

    def _ended(self) -> set[str]:
        lines = [line.split() for line in self.ask("-l").splitlines()[1:]]
        return {words[0] for words in lines if words[1] == "finished"}

    def starts(self, bench: Bench) -> list[float]:
        """Seconds from before the command to the first byte of its job."""
        fifo = self._place / "started"
        argv, _ = announcing(bench.folder, fifo)
        times = []
        with announced(fifo) as line:
            for _ in range(bench.starts + 1):
                begin = time.perf_counter()
                with subprocess.Popen(
                    [self._program, *argv],
                    env=self._surroundings,
                    cwd=self._place,
                    stdout=subprocess.PIPE,
                    text=True,
                ) as client:
                    times.append(line.begun() - begin)
                    job, _ = client.communicate()
                self._wait_for([job.strip()])
                time.sleep(PAUSE)
        return times[1:]

    def _wait_for(self, ids: Iterable[str]) -> None:
        for job in ids:
            self.ask("-w", job)
