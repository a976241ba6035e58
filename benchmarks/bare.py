"""What the interpreter, trio and SQLite take for themselves: floors to compare with.

`python -m benchmarks.bare COUNT plain|nursery` prints the bytes of one idle task, in a
process that has done nothing else.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import trio
import trio.testing

from benchmarks.service import environment
from benchmarks.skeleton import ACCEPT, open_store

#: What prints its own resident memory, in KiB.
RESIDENT = (
    "print(next(line for line in open('/proc/self/status')"
    " if line.startswith('VmRSS:')).split()[1])"
)
#: What a service loads that is not ours, and what a node agent does.
LIBRARIES = ("-c", f"import apsw, msgspec, trio; {RESIDENT}")
LITTLE = (
    *("-I", "-S", "-c"),
    f"import json, os, selectors, signal, socket, subprocess; {RESIDENT}",
)
#: The command, the service and the agent, which are loaded and do nothing.
SERVICE = (("-c", "import forge_actors.runtime.service"),)
LOADED = (
    ("-c", "import forge_actors.cli.main"),
    *SERVICE,
    ("-I", "-S", "-c", "import json, os, selectors, signal, socket"),
)
#: The service and what serves agents.
AGENTS = (
    (
        "-c",
        "import forge_actors.runtime.service, forge_actors.edges.gateway.mcp.server",
    ),
)


def resident_mib() -> float:
    """Of two interpreters that have only the libraries of service and agent."""
    return sum(float(_python(words)) for words in (LIBRARIES, LITTLE)) / 1024


def load_seconds(interpreters: tuple[tuple[str, ...], ...]) -> float:
    """Seconds that interpreters need, one after another, to load modules of ours."""
    begin = time.perf_counter()
    for words in interpreters:
        _python(words)
    return time.perf_counter() - begin


def task_bytes(count: int, kind: str) -> float:
    """Bytes of each of `count` idle tasks, in a process of its own."""
    return float(_python(("-m", "benchmarks.bare", str(count), kind)))


def rows_rate(folder: Path, count: int, specs: list[str]) -> float:
    """Rows per second that SQLite keeps in one synced commit."""
    db = open_store(folder / f"rows-{time.monotonic_ns()}.sqlite")
    try:
        begin = time.perf_counter()
        db.execute("BEGIN IMMEDIATE")
        rows = ((job, "repo", specs[job % len(specs)]) for job in range(count))
        db.executemany(ACCEPT, rows)
        db.execute("COMMIT")
        return count / (time.perf_counter() - begin)
    finally:
        db.close()


def _python(words: tuple[str, ...]) -> str:
    return subprocess.run(
        [sys.executable, *words],
        check=True,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


async def grown(count: int, *, nursery: bool) -> float:
    """Bytes that the process grew by for each of `count` tasks that wait."""
    parts = int(_own_kib())
    async with trio.open_nursery() as tasks:
        ends = []
        for _ in range(count):
            send, receive = trio.open_memory_channel[object](math.inf)
            ends.append(send)
            if nursery:
                await tasks.start(_owner, receive)
            else:
                tasks.start_soon(receive.receive)
        await trio.testing.wait_all_tasks_blocked()
        each = (int(_own_kib()) - parts) * 1024 / count
        tasks.cancel_scope.cancel()
    return each


async def _owner(
    receive: trio.MemoryReceiveChannel[object],
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    """As an actor that owns others: it has a nursery of its own."""
    async with trio.open_nursery():
        task_status.started()
        await receive.receive()


def _own_kib() -> str:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return line.split()[1]
    return "0"


if __name__ == "__main__":
    number, what = sys.argv[1:]
    print(trio.run(partial(grown, int(number), nursery=what == "nursery")))
