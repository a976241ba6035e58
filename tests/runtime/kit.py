"""What the tests of the runtime share: repositories, and what must not be left over."""

from __future__ import annotations

import os
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from forge_actors.runtime.runtime import Runtime, open_runtime
from tests.processes import command_lines

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

#: A load that this machine will never have, so that tests are not held back by it.
CALM: dict[str, Any] = {
    "pressure": {"max_load_per_cpu": 1e6, "min_free_memory_mb": 64},
}


def settings(**tables: Any) -> dict[str, Any]:
    return {**CALM, **tables}


def make_repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for arguments in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "x")):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True)
    return folder


@asynccontextmanager
async def running(home: Path | None, **tables: Any) -> AsyncGenerator[Runtime, None]:
    async with open_runtime(home, settings(**tables)) as runtime:
        yield runtime


def tasks() -> set[str]:
    """The names of all tasks of this run."""
    root = trio.lowlevel.current_root_task()
    assert root is not None
    return set(_below(root))


def _below(task: trio.lowlevel.Task) -> Iterator[str]:
    yield f"{task.name} {id(task):x}"
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            yield from _below(child)


def open_files() -> dict[str, str]:
    """The open file descriptors of this process and what they are."""
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found[entry.name] = os.readlink(entry)
        except OSError:
            continue  # the one this loop reads
    return found


def children() -> set[int]:
    """Child processes of this process, dead ones that nobody waited for included."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            found.add(int(folder.name))
    return found


def processes_with(mark: str) -> list[str]:
    """The command lines of living processes that contain the mark."""
    return [
        words.replace(b"\0", b" ").decode(errors="replace")
        for pid, words in command_lines()
        if mark.encode() in words.replace(b"\0", b" ") and pid != os.getpid()
    ]


class Leftovers:
    """What there was before; `check` compares it with what there is now."""

    def __init__(self) -> None:
        self.tasks = tasks()
        self.files = open_files()
        self.children = children()

    def check(self) -> None:
        assert tasks() - self.tasks == set()
        assert children() - self.children == set()
        assert open_files() == self.files
