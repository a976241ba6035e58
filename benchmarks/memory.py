"""What one queued job and one repository that is awake cost in memory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.bare import task_bytes
from benchmarks.idle import resident_mib
from benchmarks.repositories import make_repositories
from benchmarks.rows import Bench, Sample
from benchmarks.service import Service, ServiceFailed, running_service
from benchmarks.w1 import trivial_jobs
from benchmarks.wire import request

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Jobs a call: what reading a call needs for a moment must not count for long.
CALL = 1000
SETTLE = 1.0  # seconds


def measure(bench: Bench) -> Iterable[Sample]:
    """The growth of the service while everything is paused."""
    paths = make_repositories(bench.folder / "awake", bench.awake, "awake")
    with running_service(bench.folder) as service:
        bench.saw(service)
        few = service.add_repositories(bench.checkouts)
        many = service.add_repositories(paths)
        service.pause()
        # The first calls grow what later ones use again.
        grow(service, few, CALL * 5)
        repository = wake(service, many, len(few) + len(many))
        job = grow(service, few, bench.deep)
    yield Sample("memory-job", job, "bytes", f"{bench.deep} jobs of {len(few)} queued")
    note = f"{len(many)} awake without a job"
    yield Sample("memory-repository", repository, "bytes", note)
    for name, kind, what in (
        ("memory-task", "plain", "an idle trio task that waits at a channel"),
        ("memory-task-nursery", "nursery", "the same, with a nursery of its own"),
    ):
        yield Sample(name, task_bytes(bench.awake, kind), "bytes", what)


def wake(service: Service, names: Sequence[str], awake: int) -> float:
    """Bytes that each repository adds to the service when its actor wakes up.

    To end a pause that there is not wakes it and gives it nothing to do; it then stays
    awake for a few seconds.

    Raises:
        ServiceFailed: not `awake` are; the first one may have gone to sleep again.
    """
    calls = [request("POST", "/v1/resume", {"scope": f"repo:{name}"}) for name in names]
    before = resident_mib(service.pid)
    with service.client() as client:
        for call in calls:
            client.send(call).result()
        grown = resident_mib(service.pid) - before
        found = client.send(request("GET", "/v1/status")).result()
    if found["repositories"]["awake"] != awake:
        raise ServiceFailed(f"awake: {found['repositories']}, not {awake}")
    return grown * 1024 * 1024 / len(names)


def grow(service: Service, names: Sequence[str], count: int) -> float:
    """Bytes that each of `count` more queued jobs adds to the service."""
    before = resident_mib(service.pid)
    jobs = trivial_jobs(names, count)
    for first in range(0, count, CALL):
        service.submit(jobs[first : first + CALL])
    time.sleep(SETTLE)
    return (resident_mib(service.pid) - before) * 1024 * 1024 / count
