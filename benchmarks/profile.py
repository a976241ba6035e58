"""`python -m benchmarks profile`: what a trivial job makes the service do.

No clock of a shared machine is steady enough to see three per cent, so the bytecodes
and the instructions of W1 are counted. They vary only with how many jobs share a
commit. `py-spy` shows where the time goes where nothing else uses the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.counted import BEGIN, END
from benchmarks.repositories import make_repositories
from benchmarks.service import (
    PROGRAM,
    Service,
    ServiceFailed,
    environment,
    new_home,
    stop,
)
from benchmarks.w1 import run_queued, trivial_jobs
from forge_actors.domain.errors import ForgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TOOLS = ("bytecodes", "instructions", "py-spy")
#: With these tools a service is a hundred times slower.
START_SECONDS, END_SECONDS = 300.0, 30.0
REPOSITORIES = 20
#: Functions and rooms that are shown.
SHOWN = 25


class Tool(ABC):
    """Counts while jobs run; `words` starts a service that can be counted."""

    words: tuple[str, ...] = PROGRAM
    pid: int

    def __init__(self, folder: Path) -> None:
        self.out = folder / "counted"

    @abstractmethod
    def begin(self) -> None:
        """Count from now on."""

    @abstractmethod
    def end(self) -> None:
        """Count no more."""

    @abstractmethod
    def told(self, jobs: int) -> str:
        """What was counted, for people."""


class Bytecodes(Tool):
    """Of the interpreter, by room and by function; the agent's are not in it."""

    words = (sys.executable, "-m", "benchmarks.counted")

    def begin(self) -> None:
        os.kill(self.pid, BEGIN)

    def end(self) -> None:
        os.kill(self.pid, END)

    def told(self, jobs: int) -> str:
        until = time.monotonic() + END_SECONDS
        while not self.out.exists():
            if time.monotonic() > until:
                raise ServiceFailed("what was counted did not come")
            time.sleep(0.05)
        found: Counter[str] = Counter(json.loads(self.out.read_text()))
        return listed(found, jobs)


class Instructions(Tool):
    """Of the processor, with all of C, by valgrind's callgrind."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.words = (
            *("valgrind", "--tool=callgrind", "--instr-atstart=no"),
            *(f"--callgrind-out-file={self.out}", "--trace-children=no"),
            *PROGRAM,
        )

    def begin(self) -> None:
        self._control("--instr=on")

    def end(self) -> None:
        self._control("--instr=off")

    def _control(self, word: str) -> None:
        words = ["callgrind_control", word, str(self.pid)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)

    def told(self, jobs: int) -> str:
        self._control("--dump")
        (dumped,) = self.out.parent.glob(f"{self.out.name}.*")
        told = subprocess.run(
            ["callgrind_annotate", str(dumped)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        total = re.search(r"([\d,]+) .*PROGRAM TOTALS", told)
        assert total is not None
        each = int(total[1].replace(",", "")) / jobs
        return f"{each:,.0f} instructions a job\n{told}"


class Samples(Tool):
    """Where its threads are while they run Python, by py-spy."""

    def begin(self) -> None:
        words = ["--native", "--gil", "--rate", "1000", "--format", "raw", "--output"]
        self._recorder = subprocess.Popen(
            ["py-spy", "record", *words, str(self.out), "--pid", str(self.pid)],
            stdout=subprocess.DEVNULL,
        )
        time.sleep(2.0)  # it reads the symbols of the interpreter first

    def end(self) -> None:
        self._recorder.send_signal(signal.SIGINT)
        self._recorder.wait()

    def told(self, jobs: int) -> str:
        found: Counter[str] = Counter()
        for line in self.out.read_text().splitlines():
            stack, _, count = line.rpartition(" ")
            found[stack.rpartition(";")[2]] += int(count)
        return "\n".join(f"{n:7} {name}" for name, n in found.most_common(SHOWN))


MAKE: dict[str, Callable[[Path], Tool]] = {
    "bytecodes": Bytecodes,
    "instructions": Instructions,
    "py-spy": Samples,
}
NEEDED = {"instructions": "valgrind", "py-spy": "py-spy"}


def listed(found: Counter[str], jobs: int) -> str:
    """By room, then by function: so many a job."""
    rooms: Counter[str] = Counter()
    for name, count in found.items():
        rooms[room_of(name.partition(":")[0])] += count
    lines = [f"{found.total() / jobs:10,.0f} bytecodes a job"]
    lines += [f"{n / jobs:10,.0f}   {room}" for room, n in rooms.most_common(SHOWN)]
    lines += ["", "by function:"]
    for name, count in found.most_common(SHOWN):
        path, _, function = name.partition(":")
        lines.append(f"{count / jobs:10,.0f}   {room_of(path)} {function}")
    return "\n".join(lines)


def room_of(path: str) -> str:
    """`forge_actors/actors` of a file of ours, the package of any other."""
    parts = Path(path).parts
    if "forge_actors" in parts:
        rest = parts[parts.index("forge_actors") :]
        return "/".join(rest[:2]).removesuffix(".py")
    if "site-packages" in parts:
        return parts[parts.index("site-packages") + 1]
    return "the standard library" if len(parts) > 1 else "made at run time"


def profiled(tool: Tool, folder: Path, jobs: int) -> str:
    """W1 on a service that the tool looks at."""
    home = new_home(folder)
    paths = make_repositories(folder / "repositories", REPOSITORIES)
    with (home / "serve.log").open("w") as log:
        process = subprocess.Popen(
            [*tool.words, "serve", "--home", str(home)],
            env=environment() | {"BYTECODES": str(tool.out)},
            stdout=log,
            stderr=log,
        )
    service = until_ready(home, process)
    try:
        names = service.add_repositories(paths)
        with service.client() as client:
            run_queued(client, service, trivial_jobs(names, jobs))
            tool.pid = service.pid
            run_queued(client, service, trivial_jobs(names, jobs), tool)
            return tool.told(jobs)
    finally:
        stop(service)
        process.wait()


def until_ready(home: Path, process: subprocess.Popen[bytes]) -> Service:
    until = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < until:
        try:
            service = Service(home)
            if service.status["ready"]:
                return service
        except (ForgeError, OSError):
            pass
        time.sleep(0.2)
    process.kill()
    raise SystemExit((home / "serve.log").read_text() or "the service does not start")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks profile", description=__doc__
    )
    parser.add_argument("--with", dest="tool", choices=TOOLS, default=TOOLS[0])
    parser.add_argument("--jobs", type=int, default=200, metavar="N")
    options = parser.parse_args(arguments)
    needed = NEEDED.get(options.tool)
    if needed and not shutil.which(needed):
        parser.error(f"--with {options.tool} needs {needed}, which is not installed")
    with tempfile.TemporaryDirectory(prefix="fp-") as made:
        folder = Path(made)
        print(profiled(MAKE[options.tool](folder), folder, options.jobs))
    return 0
