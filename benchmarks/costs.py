"""Who used how much CPU time while jobs ran."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.idle import cpu_seconds
from benchmarks.rows import Sample

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.service import Service

#: Fields of /proc/PID/stat, counted behind the name of the program.
_OF_CHILDREN = slice(13, 15)
MICRO = 1e6


@dataclass(frozen=True)
class Used:
    """Seconds of CPU time, by who used them; `jobs` are those that have ended."""

    service: float
    agent: float
    jobs: float

    def __sub__(self, other: Used) -> Used:
        return Used(
            self.service - other.service,
            self.agent - other.agent,
            self.jobs - other.jobs,
        )

    @property
    def whole(self) -> float:
        return self.service + self.agent + self.jobs


class Meter:
    """What service, agent and jobs used between `begin` and `end`, and all others."""

    def __init__(self, service: Service) -> None:
        agent = service.agent_pid
        assert agent is not None
        self._pids = (service.pid, agent)
        self.used = Used(0.0, 0.0, 0.0)
        self.others = 0.0

    def begin(self) -> None:
        self._before, self._all = self._now(), machine_seconds()

    def end(self) -> None:
        self.used = self._now() - self._before
        self.others = max(0.0, machine_seconds() - self._all - self.used.whole)

    def _now(self) -> Used:
        service, agent = self._pids
        return Used(
            cpu_seconds([service]), cpu_seconds([agent]), children_seconds(agent)
        )


def children_seconds(pid: int) -> float:
    """User and system time of the children that a process has waited for."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    ticks = stat.rpartition(")")[2].split()[_OF_CHILDREN]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def machine_seconds() -> float:
    """CPU time that has been used on our cores since the machine runs.

    What another machine took from this one (steal) counts as used by others.
    """
    ours = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    ticks = 0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name in ours:
            user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
            ticks += user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK")


def cores() -> int:
    return len(os.sched_getaffinity(0))


def samples(name: str, meter: Meter, seconds: float, jobs: int) -> Iterable[Sample]:
    """What one job cost each of them, and what was left of the cores meanwhile."""
    used, whole = meter.used, seconds * cores()
    for who, part, what in (
        ("service", used.service, "of the service"),
        ("agent", used.agent, "of the node agent"),
        ("job", used.jobs, "of the job's own process"),
    ):
        note = f"CPU time {what} for each job of {name}"
        yield Sample(f"{name}-cpu-{who}", part * MICRO / jobs, "us", note)
    others = 100 * meter.others / whole
    idle = max(0.0, 100 * (1 - used.whole / whole) - others)
    of = f"of {cores()} cores in {name}"
    yield Sample(f"{name}-idle", idle, "%", f"{of}: used by nobody")
    yield Sample(f"{name}-others", others, "%", f"{of}: by all but these three")
