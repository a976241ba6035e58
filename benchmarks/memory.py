"""What one queued job and one repository that is awake cost in memory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.idle import resident_mib
from benchmarks.repositories import make_repositories
from benchmarks.rows import Bench, Sample
from benchmarks.service import Service, running_service
from benchmarks.w1 import trivial_jobs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Jobs a call: what reading a call needs for a moment must not count for long.
CALL = 1000
SETTLE = 1.0  # seconds


def measure(bench: Bench) -> Iterable[Sample]:
    """The growth of the service while everything is paused.

    An actor is awake as long as its repository has a job, so each has one, whose own
    memory is then taken off.
    """
    paths = make_repositories(bench.folder / "awake", bench.awake, "awake")
    with running_service(bench.folder) as service:
        bench.saw(service)
        few = service.add_repositories(bench.checkouts)
        many = service.add_repositories(paths)
        service.pause()
        # The first calls grow what later ones use again.
        grow(service, few, CALL * 5)
        job = grow(service, few, bench.deep)
        repository = grow(service, many, len(many)) - job
    yield Sample("memory-job", job, "bytes", f"{bench.deep} jobs of {len(few)} queued")
    yield Sample("memory-repository", repository, "bytes", f"{len(many)} awake")


def grow(service: Service, names: Sequence[str], count: int) -> float:
    """Bytes that each of `count` more queued jobs adds to the service."""
    before = resident_mib(service.pid)
    jobs = trivial_jobs(names, count)
    for first in range(0, count, CALL):
        service.submit(jobs[first : first + CALL])
    time.sleep(SETTLE)
    return (resident_mib(service.pid) - before) * 1024 * 1024 / count
