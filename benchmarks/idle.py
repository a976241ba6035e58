"""What a service costs that has nothing to do."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.bare import resident_mib as bare_mib
from benchmarks.repositories import make_repositories
from benchmarks.rows import Bench, Sample
from benchmarks.service import running_service

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SETTLE = 2.0  # seconds in which what registering left to do is done
PERIOD = 30.0  # seconds that the CPU time is given for


def measure(bench: Bench) -> Iterable[Sample]:
    """Register many repositories, then leave the service alone."""
    folder = bench.folder / "registered"
    if folder.exists():
        paths = sorted(folder.iterdir())
    else:
        paths = make_repositories(folder, bench.registered)
    with running_service(bench.folder) as service:
        bench.saw(service)
        service.add_repositories(paths)
        time.sleep(SETTLE)
        before = cpu_seconds(service.pids)
        time.sleep(bench.idle_seconds)
        cpu = cpu_seconds(service.pids) - before
        memory = [resident_mib(pid) for pid in service.pids]
    note = f"{len(paths)} repositories registered, service and agent together"
    seconds = f"in {PERIOD:.0f} s, measured over {bench.idle_seconds:.0f} s; {note}"
    yield Sample("idle-cpu", cpu * 1000 * PERIOD / bench.idle_seconds, "ms", seconds)
    # What agents need of it is loaded where it is installed.
    agents = service.status["mcp"]["available"]
    name = "idle-rss-agents" if agents else "idle-rss"
    yield Sample(name, sum(memory), "MiB", note)
    for part, value in zip(("service", "agent"), memory, strict=False):
        yield Sample(f"idle-rss-{part}", value, "MiB", f"of it the {part}")
    bare = "interpreters with the libraries of service and agent, together"
    yield Sample("idle-rss-python", bare_mib(), "MiB", bare)


def cpu_seconds(pids: Sequence[int]) -> float:
    """User and system time of all threads that the processes have or had."""
    # The number that clock_getcpuclockid(3) gives for a process.
    return sum(time.clock_gettime((~pid << 3) | 2) for pid in pids)


def resident_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0
