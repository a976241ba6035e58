"""How long a service takes to come back to a home with much in it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.rows import Bench, Sample
from benchmarks.service import (
    HOLDER,
    Service,
    ServiceFailed,
    killed,
    new_home,
    running,
)
from benchmarks.w1 import RESUME, run_queued, trivial_jobs, wait_for, wait_request

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def measure(bench: Bench) -> Iterable[Sample]:
    """From the start of the command to a status that says ready, and to a job's end.

    The service before it was killed, so that it has to find out what became of the
    jobs that ran: all but one worker have one, which goes on. The home is paused
    meanwhile, so that as many jobs wait after the restart.
    """
    home = new_home(
        bench.folder, workers=bench.at_once, repositories=bench.repositories
    )
    with killed(home) as service, service.client() as client:
        names = service.add_repositories(bench.checkouts)
        run_queued(client, service, trivial_jobs(names, bench.restart_finished))
        hold_workers(service, names, bench.at_once - 1)
        service.pause()
        service.submit(trivial_jobs(names, bench.restart_queued, priority="P3"))
        urgent = service.submit(trivial_jobs(names, 1, priority="P0"))
    begin = time.perf_counter()
    with running(home) as service, service.client() as client:
        ready = time.perf_counter() - begin
        bench.saw(service)
        expect(service.status, bench)
        client.send(RESUME).result()
        first, _ = wait_for(client, wait_request(urgent), begin)
    note = (
        f"after a crash; {bench.restart_queued} jobs queued, {bench.restart_finished}"
        f" finished, {bench.at_once - 1} running"
    )
    yield Sample("restart", ready, "s", f"until it says ready; {note}")
    yield Sample("restart-first", first, "s", "until the first job has ended")


def hold_workers(service: Service, names: Sequence[str], count: int) -> None:
    """Let so many jobs run that do nothing for longer than the measurement takes."""
    if not count:
        return
    jobs = [
        {"repo": names[number % len(names)], "argv": list(HOLDER), "read_only": True}
        for number in range(count)
    ]
    query: list[tuple[str, str | int | None]] = [("kind", "job_running")]
    query += [("job", job) for job in service.submit(jobs)]
    begun = 0
    for piece in service.api.stream(
        "GET", ("events",), query=[*query, ("after", 0), ("follow", 1)]
    ):
        begun += piece.count(b"\n")
        if begun == count:
            return


def expect(status: dict[str, object], bench: Bench) -> None:
    """Raise ServiceFailed if the service is not ready, or lost a job."""
    counts = status["counts"]
    wanted = {
        "queued": bench.restart_queued + 1,
        "running": bench.at_once - 1,
        "succeeded": bench.restart_finished,
    }
    wanted = {state: count for state, count in wanted.items() if count}
    if not status["ready"] or counts != wanted:
        raise ServiceFailed(f"ready: {status['ready']}, {counts} instead of {wanted}")
