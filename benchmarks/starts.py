"""What a verb costs in the shell, beside an interpreter that does nothing."""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.rows import Bench, Sample
from benchmarks.service import PROGRAM, ServiceFailed, environment, running_service
from benchmarks.w1 import trivial_jobs

if TYPE_CHECKING:
    from collections.abc import Iterable

QUEUED = 20  # jobs that `jobs` lists, and those submitted meanwhile


def measure(bench: Bench) -> Iterable[Sample]:
    """Start each command in turn, from before the spawn to its end.

    The service is paused: a job that runs would be timed with the command.
    """
    installed = Path(sys.executable).with_name("forge-actors")
    program = [str(installed)] if installed.is_file() else list(PROGRAM)
    with running_service(bench.folder) as service:
        bench.saw(service)
        (name,) = service.add_repositories(bench.checkouts[:1])
        service.pause()
        service.submit(trivial_jobs([name], QUEUED))
        home = ["--home", str(service.home)]
        commands = {
            "start-python": [sys.executable, "-c", "pass"],
            "start-help": [*program, "--help"],
            "start-status": [*program, "status", *home],
            "start-submit": [*program, "submit", "--repo", name, *home, "--", "true"],
            "start-jobs": [*program, "jobs", *home],
        }
        times: dict[str, list[float]] = {row: [] for row in commands}
        for number in range(bench.shell_starts + 1):
            for row, command in commands.items():
                seconds = start(command)
                if number:  # the first one may have to compile modules
                    times[row].append(seconds)
    how = "the installed command" if installed.is_file() else "python -m forge_actors"
    for row in commands:
        what = "python -c pass" if row == "start-python" else how
        note = f"{what}, median of {bench.shell_starts}"
        yield Sample(row, statistics.median(times[row]) * 1000, "ms", note)


def start(command: list[str]) -> float:
    """Seconds until the command has ended.

    Raises:
        ServiceFailed: it did not end with 0.
    """
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1)]
    surroundings = environment()
    begin = time.perf_counter()
    pid = os.posix_spawn(command[0], command, surroundings, file_actions=null)
    _, status = os.waitpid(pid, 0)
    seconds = time.perf_counter() - begin
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        raise ServiceFailed(f"{' '.join(command)} ended with {code}")
    return seconds
