"""How fast jobs are accepted, durably, while nothing can start.

The only worker is busy with a job that sleeps, so what is measured is accepting and the
decision that a job has to wait. One batch call, then many callers with one job a call.
"""

from __future__ import annotations

import contextlib
import selectors
import time
from typing import TYPE_CHECKING

from benchmarks.cref import trivial_program
from benchmarks.rows import Bench, Sample
from benchmarks.service import HOLDER, Service, ServiceFailed, running_service
from benchmarks.wire import Answer, connect, request

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Iterator, Sequence


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
            begin = time.perf_counter()
            answer = client.send(submit)
            seconds = time.perf_counter() - begin
        if len({job["id"] for job in answer.result()["jobs"]}) != bench.batch:
            raise ServiceFailed("not every job of the batch was accepted")
    yield Sample(
        "accept-batch",
        bench.batch / seconds,
        "jobs/s",
        f"{bench.batch} jobs in one call, the only worker busy",
    )
    with held_service(bench) as (service, names):
        seconds = run_callers(service, names, bench.callers, bench.calls)
    yield Sample(
        "accept-callers",
        bench.callers * bench.calls / seconds,
        "jobs/s",
        f"{bench.callers} callers, {bench.calls} calls each, one job a call",
    )


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
    """One connection that submits the same job again and again."""

    def __init__(self, path: str, repo: str, calls: int) -> None:
        job = {"repo": repo, "argv": [trivial_program()]}
        self._path = path
        self._submit = request("POST", "/v1/jobs", {"jobs": [job]})
        self._left = calls
        self._answer = Answer()
        self.line: socket.socket = connect(path)

    def begin(self) -> None:
        self._answer = Answer()
        self.line.sendall(self._submit)

    def take(self) -> bool:
        """Take what arrived; True when a whole response did."""
        if not self._answer.feed(self.line.recv(65536)):
            return False
        if self._answer.status >= 400:
            self._answer.result()
        self._left -= 1
        return True

    @property
    def done(self) -> bool:
        return self._left == 0

    def reconnect_if_closed(self) -> bool:
        if not self._answer.closes:
            return False
        self.line.close()
        self.line = connect(self._path)
        return True


def run_callers(
    service: Service, names: Sequence[str], callers: int, calls: int
) -> float:
    """Seconds until every caller had its last answer; all in this one thread."""
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
                if caller.done:
                    ready.unregister(caller.line)
                    left -= 1
                    continue
                ready.unregister(caller.line)
                caller.reconnect_if_closed()
                ready.register(caller.line, selectors.EVENT_READ, caller)
                caller.begin()
        seconds = time.perf_counter() - begin
    for caller in lines:
        caller.line.close()
    return seconds
