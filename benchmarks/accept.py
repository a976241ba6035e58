"""How fast jobs are accepted, durably, while nothing can start.

The only worker is busy with a job that sleeps, so what is measured is accepting and the
decision that a job has to wait. One batch call, then many callers with one job a call.
"""

from __future__ import annotations

import contextlib
import json
import re
import selectors
import time
from typing import TYPE_CHECKING

from benchmarks.bare import rows_rate
from benchmarks.cref import trivial_program
from benchmarks.idle import cpu_seconds
from benchmarks.rows import Bench, Sample
from benchmarks.service import HOLDER, Service, ServiceFailed, running_service
from benchmarks.wire import Refusal, connect, request

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Iterator, Sequence

_ACCEPTED = re.compile(
    rb"HTTP/1\.1 201 .*\r\n(?:[a-z-]+: .*\r\n)*?content-length: (?P<length>\d+)\r\n"
    rb"(?:[a-z-]+: .*\r\n)*\r\n"
)


def measure(bench: Bench) -> Iterable[Sample]:
    """A batch, then the callers, each on a service of its own."""
    with held_service(bench) as (service, names):
        bench.saw(service)
        jobs = [
            {"repo": names[number % len(names)], "argv": [trivial_program()]}
            for number in range(bench.batch)
        ]
        submit = request("POST", "/v1/jobs", {"jobs": jobs})
        with service.client() as client:
            before = cpu_seconds([service.pid])
            begin = time.perf_counter()
            answer = client.send(submit)
            seconds = time.perf_counter() - begin
            batch_cpu = cpu_seconds([service.pid]) - before
        if len({job["id"] for job in answer.result()["jobs"]}) != bench.batch:
            raise ServiceFailed("not every job of the batch was accepted")
    yield Sample(
        "accept-batch",
        bench.batch / seconds,
        "jobs/s",
        f"{bench.batch} jobs in one call, the only worker busy",
    )
    yield _cost("accept-batch", batch_cpu, bench.batch)
    yield Sample(
        "accept-sqlite",
        rows_rate(bench.folder, bench.batch, [json.dumps(job) for job in jobs]),
        "per s",
        f"{bench.batch} such rows, which SQLite keeps in one synced commit",
    )
    with held_service(bench) as (service, names):
        before = cpu_seconds([service.pid])
        seconds = run_callers(service, names, bench.callers, bench.calls)
        callers_cpu = cpu_seconds([service.pid]) - before
    yield Sample(
        "accept-callers",
        bench.callers * bench.calls / seconds,
        "jobs/s",
        f"{bench.callers} callers, {bench.calls} calls each, one job a call",
    )
    yield _cost("accept-callers", callers_cpu, bench.callers * bench.calls)


def _cost(name: str, seconds: float, jobs: int) -> Sample:
    note = f"CPU time of the service for each job of {name}"
    return Sample(f"{name}-cpu", seconds * 1e6 / jobs, "us", note)


@contextlib.contextmanager
def held_service(bench: Bench) -> Iterator[tuple[Service, list[str]]]:
    with running_service(
        bench.folder, workers=1, repositories=bench.repositories
    ) as service:
        names = service.add_repositories(bench.checkouts)
        holder = {"repo": names[0], "argv": HOLDER}
        service.api.post("jobs", body={"jobs": [holder]})
        time.sleep(0.2)  # until it runs; a little late changes nothing
        yield service, names


class Caller:
    """One connection that submits the same job again and again.

    It shares the machine with the service that is measured, so it does no more than
    read each answer whole and look whether the job was accepted.
    """

    def __init__(self, path: str, repo: str, calls: int) -> None:
        job = {"repo": repo, "argv": [trivial_program()]}
        self._submit = request("POST", "/v1/jobs", {"jobs": [job]})
        self._data = b""
        self.left = calls
        self.line: socket.socket = connect(path)

    def begin(self) -> None:
        self._data = b""
        self.line.sendall(self._submit)

    def take(self) -> bool:
        """Take what arrived; True when a whole answer did.

        Raises:
            Refusal: the job was not accepted, or the connection was closed.
        """
        data = self.line.recv(65536)
        self._data += data
        if not data:
            raise Refusal("the service closed a connection")
        found = _ACCEPTED.match(self._data)
        if found is None:
            if b"\r\n\r\n" in self._data:
                raise Refusal(self._data.decode(errors="replace")[:500])
            return False
        if len(self._data) < found.end() + int(found["length"]):
            return False
        self.left -= 1
        return True


def run_callers(
    service: Service, names: Sequence[str], callers: int, calls: int
) -> float:
    """Seconds until every caller had its last answer; all in this one thread.

    Raises:
        ServiceFailed: the service does not hold as many jobs as it accepted.
    """
    before = service.jobs
    lines = [
        Caller(service.socket, names[n % len(names)], calls) for n in range(callers)
    ]
    with selectors.DefaultSelector() as ready:
        for caller in lines:
            ready.register(caller.line, selectors.EVENT_READ, caller)
        left = len(lines)
        begin = time.perf_counter()
        for caller in lines:
            caller.begin()
        while left:
            for key, _ in ready.select():
                caller = key.data
                if not caller.take():
                    continue
                if caller.left:
                    caller.begin()
                else:
                    ready.unregister(caller.line)
                    left -= 1
        seconds = time.perf_counter() - begin
    for caller in lines:
        caller.line.close()
    if service.jobs - before != callers * calls:
        raise ServiceFailed(f"{service.jobs - before} jobs of {callers * calls} exist")
    return seconds
