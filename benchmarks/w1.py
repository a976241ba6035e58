"""W1: many trivial jobs over 20 repositories, four at once, all queued first."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from benchmarks import costs
from benchmarks.costs import Meter
from benchmarks.cref import trivial_program
from benchmarks.rows import Bench, Sample
from benchmarks.service import Service, ServiceFailed, running_service
from benchmarks.wire import request

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.wire import Client

#: Seconds in which what accepting left to do is done: queueing is not timed.
SETTLE = 0.3
DEEP_SETTLE = 2.0


class Watch(Protocol):
    """What looks at the time that counts, and at no more."""

    def begin(self) -> None: ...

    def end(self) -> None: ...


RESUME = request("POST", "/v1/resume", {"scope": "all"})


def measure(bench: Bench) -> Iterable[Sample]:
    """From the resume of a paused service to the answer of one held wait."""
    with running_service(
        bench.folder, workers=bench.at_once, repositories=bench.repositories
    ) as service:
        bench.saw(service)
        names = service.add_repositories(bench.checkouts)
        meter = Meter(service)
        seconds = run_warm(bench, service, names, meter=meter)
    note = (
        f"{bench.jobs} jobs, {len(names)} repositories, {bench.at_once} at once;"
        f" all queued first, after {bench.warm_up} others"
    )
    yield Sample("w1", bench.jobs / seconds, "jobs/s", note, rate=True)
    yield from costs.samples("w1", meter, seconds, bench.jobs)


def measure_deep(bench: Bench) -> Iterable[Sample]:
    """The same while very many jobs of a lower priority wait in these repositories."""
    with running_service(
        bench.folder, workers=bench.at_once, repositories=bench.repositories
    ) as service:
        bench.saw(service)
        names = service.add_repositories(bench.checkouts)
        meter = Meter(service)
        seconds = run_warm(bench, service, names, deep=bench.deep, meter=meter)
    note = f"as w1, with {bench.deep} jobs of a lower priority queued behind them"
    yield Sample("w1-deep", bench.jobs / seconds, "jobs/s", note, rate=True)
    yield from costs.samples("w1-deep", meter, seconds, bench.jobs)


def run_warm(
    bench: Bench,
    service: Service,
    names: Sequence[str],
    *,
    deep: int = 0,
    meter: Watch | None = None,
) -> float:
    """Seconds of the jobs that count; what is `deep` waits from before to after."""
    with service.client() as client:
        if bench.warm_up:
            run_queued(client, service, trivial_jobs(names, bench.warm_up))
        if deep:
            service.pause()
            service.submit(trivial_jobs(names, deep, priority="P3"))
            time.sleep(DEEP_SETTLE)
        return run_queued(client, service, trivial_jobs(names, bench.jobs), meter)


def trivial_jobs(
    names: Sequence[str], count: int, **fields: object
) -> list[dict[str, object]]:
    """Jobs of the trivial program, in turn over the repositories."""
    argv = [trivial_program()]
    return [
        {"repo": names[number % len(names)], "argv": argv, **fields}
        for number in range(count)
    ]


def run_queued(
    client: Client,
    service: Service,
    jobs: Sequence[dict[str, object]],
    watch: Watch | None = None,
) -> float:
    """Queue the jobs while everything is paused; the seconds of running them.

    A `watch` is told when they begin and end.

    Raises:
        ServiceFailed: a job did not succeed.
    """
    service.pause()
    ids = service.submit(jobs)
    held = wait_request(ids)
    time.sleep(SETTLE)
    if watch is not None:
        watch.begin()
    begin = time.perf_counter()
    resumed = client.send(RESUME)
    seconds, views = wait_for(client, held, begin)
    if watch is not None:
        watch.end()
    resumed.result()
    states = [view["state"] for view in views]
    if len(set(ids)) != len(jobs) or states != ["succeeded"] * len(jobs):
        wrong = sorted({state for state in states if state != "succeeded"})
        raise ServiceFailed(
            f"{len(ids)} of {len(jobs)} accepted; ended otherwise: {wrong}"
        )
    return seconds


def wait_request(ids: Sequence[str]) -> bytes:
    return request("POST", "/v1/wait", {"jobs": list(ids), "timeout": 60})


def wait_for(
    client: Client, held: bytes, begin: float
) -> tuple[float, list[dict[str, Any]]]:
    """Seconds from `begin` to the answer that all jobs ended, and the jobs."""
    while True:
        answer = client.send(held)
        seconds = time.perf_counter() - begin
        result = answer.result()
        if not result["timed_out"]:
            return seconds, result["jobs"]
