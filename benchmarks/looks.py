"""Looking at the checkouts of many repositories, and what that costs everybody else."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.repositories import make_repositories
from benchmarks.rows import Bench, Sample
from benchmarks.service import Service, ServiceFailed, new_home, running
from benchmarks.w1 import wait_for, wait_request
from benchmarks.w2 import announced, announcing, percentile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Seconds between two questions whether all was looked at.
PERIOD = 2.0
#: Seconds after which nobody waits any more.
PATIENCE = 300.0
#: Jobs that begin, one after the other, before another number is taken.
STARTS = 50


def measure(bench: Bench) -> Iterable[Sample]:
    """Let a job end in each repository, so that all are to be looked at."""
    folder = bench.folder / "looked-at"
    if folder.exists():
        paths = sorted(folder.iterdir())
    else:
        paths = make_repositories(folder, bench.looked_at)
    home = new_home(bench.folder, repositories=len(paths))
    with running(home) as service:
        bench.saw(service)
        names = service.add_repositories(paths)
        _run_everywhere(service, names)  # every actor was awake, every folder was read
        _until_seen(service, len(names))
        before = cpu_seconds(service)
        began = time.monotonic()
        _run_everywhere(service, names)
        ended = time.monotonic()
        jobs = cpu_seconds(service) - before
        before = cpu_seconds(service)
        _until_seen(service, len(names))
        took = time.monotonic() - began
        cpu = cpu_seconds(service) - before
    share = 100 * cpu / (time.monotonic() - ended)
    note = f"{len(names)} repositories, each after a job of its own"
    yield Sample("looks", took, "s", f"from the first job on; {note}")
    told = f"service and git, after the jobs, which took {jobs:.1f} s of CPU"
    yield Sample("looks-cpu", share, "% of a core", told)
    yield from _starts(bench, paths)


def _starts(bench: Bench, paths: Sequence[Path]) -> Iterable[Sample]:
    """W2 while others are looked at, and while nothing is: in turn, on one service."""
    quiet: list[float] = []
    looking: list[float] = []
    argv, how = announcing(bench.folder, bench.folder / "started-looking")
    home = new_home(bench.folder, repositories=len(paths))
    with running(home) as service, announced(bench.folder / "started-looking") as line:
        first, *names = service.add_repositories(paths)
        _run_everywhere(service, names)
        while len(quiet) < bench.starts:
            _until_seen(service, len(names))
            quiet += line.starts(service, first, argv, STARTS)
            _run_everywhere(service, names)
            looking += line.starts(service, first, argv, STARTS)
            if not _unseen(service):
                raise ServiceFailed("all was looked at before the jobs had started")
    note = f"{len(quiet)} jobs, one at a time, {how}"
    yield Sample("w2-quiet", statistics.median(quiet) * 1000, "ms", note)
    others = f"{note}, while {len(names)} repositories are looked at"
    yield Sample("w2-looking", statistics.median(looking) * 1000, "ms", others)
    yield Sample("w2-looking-p99", percentile(looking, 0.99) * 1000, "ms", others)


def _run_everywhere(service: Service, names: Sequence[str]) -> None:
    ids = service.submit([{"repo": name, "argv": ["/bin/true"]} for name in names])
    with service.client() as client:
        wait_for(client, wait_request(ids), time.perf_counter())


def _unseen(service: Service) -> list[str]:
    """Repositories of which what is known may be out of date, the idle ones."""
    views: list[dict[str, Any]] = service.api.get("repositories")["repositories"]
    return [view["name"] for view in views if view["status"]["stale"]]


def _until_seen(service: Service, count: int) -> None:
    """Wait until at most one of them is out of date: the one with the next job."""
    until = time.monotonic() + PATIENCE
    while len(_unseen(service)) > 1:
        if time.monotonic() > until:
            raise ServiceFailed(f"not all of {count} were looked at")
        time.sleep(PERIOD)


def cpu_seconds(service: Service) -> float:
    """User and system time of the service and of what it has started and reaped."""
    fields = Path(f"/proc/{service.pid}/stat").read_text().rpartition(") ")[2].split()
    return sum(map(int, fields[11:15])) / 100
