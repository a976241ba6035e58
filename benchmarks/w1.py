"""W1: many trivial jobs over 20 repositories, four at once, through the socket."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from benchmarks.cref import trivial_program
from benchmarks.rows import Bench, Sample
from benchmarks.service import HOLDER, ServiceFailed, running_service
from benchmarks.wire import request

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.wire import Client


def measure(bench: Bench) -> Iterable[Sample]:
    """One batch of jobs, from the start of the submit to the answer of the wait."""
    with (
        running_service(
            bench.folder, workers=bench.at_once, repositories=bench.repositories
        ) as service,
        service.client() as client,
    ):
        bench.saw(service)
        names = service.add_repositories(bench.checkouts)
        seconds, accepted = run_batch(client, names, bench.jobs)
    yield Sample(
        "w1",
        bench.jobs / seconds,
        "jobs/s",
        f"{bench.jobs} jobs, {len(names)} repositories, {bench.at_once} at once;"
        f" accepted after {accepted * 1000:.0f} ms",
        rate=True,
    )


def measure_deep(bench: Bench) -> Iterable[Sample]:
    """The same while very many jobs wait behind a sleeping one in another repository.

    The sleeper has a worker of its own, so the others still run as many at once.
    """
    with (
        running_service(
            bench.folder,
            workers=bench.at_once + 1,
            repositories=bench.repositories + 1,
        ) as service,
        service.client() as client,
    ):
        bench.saw(service)
        crowded, *names = service.add_repositories([bench.crowded, *bench.checkouts])
        holder = {"repo": crowded, "argv": HOLDER}
        service.api.post("jobs", body={"jobs": [holder]})
        time.sleep(0.2)  # until it runs
        waiting = {"repo": crowded, "argv": [trivial_program()]}
        service.api.post("jobs", body={"jobs": [waiting] * bench.deep})
        time.sleep(1.0)  # until what accepting left to do is done
        seconds, _ = run_batch(client, names, bench.jobs)
    yield Sample(
        "w1-deep",
        bench.jobs / seconds,
        "jobs/s",
        f"as w1, with {bench.deep} jobs queued behind a sleeping one",
        rate=True,
    )


def run_batch(client: Client, names: Sequence[str], count: int) -> tuple[float, float]:
    """Seconds until all jobs had ended, and until they were accepted.

    Raises:
        ServiceFailed: a job did not succeed.
    """
    program = trivial_program()
    jobs = [
        {"repo": names[number % len(names)], "argv": [program]}
        for number in range(count)
    ]
    submit = request("POST", "/v1/jobs", {"jobs": jobs})
    begin = time.perf_counter()
    reply = client.send(submit)
    accepted = time.perf_counter() - begin
    ids = [job["id"] for job in reply.result()["jobs"]]
    seconds, views = wait_for(client, ids, begin)
    states = [view["state"] for view in views]
    if len(set(ids)) != count or states != ["succeeded"] * count:
        wrong = sorted({state for state in states if state != "succeeded"})
        raise ServiceFailed(f"{len(ids)} of {count} accepted; ended otherwise: {wrong}")
    return seconds, accepted


def wait_for(
    client: Client, ids: Sequence[str], begin: float
) -> tuple[float, list[dict[str, Any]]]:
    """Seconds from `begin` to the answer that all jobs ended, and the jobs."""
    held = request("POST", "/v1/wait", {"jobs": list(ids), "timeout": 60})
    while True:
        answer = client.send(held)
        seconds = time.perf_counter() - begin
        result = answer.result()
        if not result["timed_out"]:
            return seconds, result["jobs"]
