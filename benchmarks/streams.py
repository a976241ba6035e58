"""What readers of events cost: W1 without any and with very many, and their memory."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from benchmarks.costs import MICRO, Meter
from benchmarks.idle import cpu_seconds, resident_mib
from benchmarks.rows import Bench, Sample
from benchmarks.service import ServiceFailed, environment, running_service
from benchmarks.w1 import run_queued, run_warm, trivial_jobs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from benchmarks.costs import Used
    from benchmarks.service import Service

PAIRS = 3
#: Seconds in which what was told last arrives.
SETTLE = 0.5


class Crowd:
    """The readers, in a process of their own."""

    def __init__(self, service: Service, idle: int, active: int) -> None:
        command = [sys.executable, "-m", "benchmarks.listeners", service.socket]
        self._process = subprocess.Popen(
            [*command, str(idle), str(active)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise ServiceFailed("the readers could not begin")
        #: CPU seconds that they have used to begin.
        self._before = cpu_seconds([self._process.pid])

    @property
    def used(self) -> float:
        """CPU seconds for what they have heard."""
        return cpu_seconds([self._process.pid]) - self._before

    def end(self) -> dict[str, Any]:
        """What they heard."""
        out, _ = self._process.communicate()
        heard: dict[str, Any] = json.loads(out)
        return heard


@contextmanager
def crowd_of(service: Service, idle: int, active: int) -> Iterator[dict[str, Any]]:
    """Readers for the length of the block; what they heard is there after it.

    Raises:
        ServiceFailed: one of them missed an event, or was told one twice.
    """
    heard: dict[str, Any] = {}
    crowd = Crowd(service, idle, active)
    try:
        yield heard
        time.sleep(SETTLE)
    finally:
        heard["seconds"] = crowd.used
        heard |= crowd.end()
    last = service.api.get("status")["store"]["last_event"]
    if not heard["ordered"] or (active and heard["last"] != last) or heard["idle"]:
        raise ServiceFailed(f"of {last} events the readers heard {heard}")


def measure(bench: Bench) -> Iterable[Sample]:
    """W1 in turn without readers, with active ones, and with many idle ones more."""
    idle, active = bench.idle_readers, bench.active_readers
    rates: dict[str, list[float]] = {"none": [], "active": [], "all": []}
    cpu: list[float] = []
    growth: list[float] = []
    with running_service(
        bench.folder, workers=bench.at_once, repositories=bench.repositories
    ) as service:
        bench.saw(service)
        names = service.add_repositories(bench.checkouts)
        run_warm(bench, service, names)
        jobs = trivial_jobs(names, bench.jobs)
        meter = Meter(service)
        calm: list[Used] = []
        told_to: list[Used] = []
        own: list[float] = []

        def rate() -> float:
            with service.client() as client:
                return bench.jobs / run_queued(client, service, jobs, meter)

        for _ in range(PAIRS):
            rates["none"].append(rate())
            calm.append(meter.used)
            with crowd_of(service, 0, active) as heard:
                rates["active"].append(rate())
                told_to.append(meter.used)
            own.append(heard["seconds"])
        with crowd_of(service, idle, active) as heard:
            rates["all"].append(rate())
            memory = resident_mib(service.pid)
            spent = cpu_seconds([service.pid])
            for _ in range(PAIRS):
                rates["all"].append(rate())
            growth.append(resident_mib(service.pid) - memory)
            cpu.append(cpu_seconds([service.pid]) - spent)
        told = heard["last"] - heard["first"] + 1
        alone = cpu_seconds([service.pid])
        for _ in range(PAIRS):
            rate()
        cpu.append(cpu_seconds([service.pid]) - alone)
    events = told / (PAIRS + 1) * PAIRS
    middle = {name: statistics.median(found) for name, found in rates.items()}
    note = f"{active} readers of all events, no event missed"
    yield Sample("w1-readers", middle["active"] / middle["none"] * 100, "%", note)
    note = f"the same beside {idle} who wait for something else"
    yield Sample("w1-all-readers", middle["all"] / middle["none"] * 100, "%", note)
    yield from _where(bench, calm, told_to, own)
    extra = (cpu[0] - cpu[1]) / events * 1e6
    note = f"of the service for each event, told to {active} beside {idle}"
    yield Sample("readers-cpu", extra, "us", note)
    jobs_run = PAIRS * bench.jobs
    note = f"of the service over {jobs_run} jobs, whose own memory is in it"
    yield Sample("readers-memory", growth[0], "MiB", note)


def _where(
    bench: Bench, calm: Sequence[Used], told_to: Sequence[Used], own: Sequence[float]
) -> Iterable[Sample]:
    """Whose CPU time a job is, without readers and with the active ones."""
    each = MICRO / bench.jobs
    alone = statistics.median(used.whole for used in calm)
    note = "CPU time of a job without readers: its own, the service's and the agent's"
    yield Sample("readers-job", alone * each, "us", note)
    more = statistics.median(used.whole for used in told_to) - alone
    note = f"more of these with {bench.active_readers} readers of all events"
    yield Sample("readers-told", more * each, "us", note)
    note = "of the readers for each job, on the same cores"
    yield Sample("readers-own", statistics.median(own) * each, "us", note)
