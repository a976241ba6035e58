"""What the jobs of a chaos run wrote of themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Run:
    """One time that a job began. Times are seconds of the monotonic clock."""

    #: That of its plan.
    name: str
    job: str
    attempt: int
    fence: int
    pid: int
    began: float
    ended: float | None = None
    code: int | None = None
    #: What it claimed while another process held it.
    overlaps: list[str] = field(default_factory=list)

    @property
    def last_line(self) -> str:
        return f"{self.job} attempt {self.attempt} ends with {self.code}"


class Unreadable(Exception):
    """A job wrote what no job writes."""


def read_told(path: Path) -> list[Run]:
    """The runs that one job wrote down, in the order in which they began.

    Raises:
        Unreadable: a line is none of its.
    """
    runs: list[Run] = []
    if not path.exists():
        return runs
    for line in path.read_text().splitlines():
        word, job, attempt, fence, pid, moment, *more = line.split()
        seconds = int(moment) / 1e9
        if word == "begin":
            runs.append(
                Run(path.name, job, int(attempt), int(fence), int(pid), seconds)
            )
            continue
        run = next((one for one in reversed(runs) if one.pid == int(pid)), None)
        if (
            run is None
            or run.ended is not None
            or (job, attempt)
            != (
                run.job,
                str(run.attempt),
            )
        ):
            raise Unreadable(f"{path.name} has a line without its beginning: {line}")
        if word == "end":
            run.ended, run.code = seconds, int(more[0])
        else:
            run.overlaps.append(more[0].partition(":")[2])
    return runs
