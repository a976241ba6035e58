"""Nothing is left: what there is at the end of a block is what there was at its begin.

async with assert_no_leaks():
    await the_code_that_is_tested()
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import trio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from forge_actors.runtime.handles import Runtime

#: Where the descriptors of this process are: Linux, and others.
_DESCRIPTORS = ("/proc/self/fd", "/dev/fd")


class Leaked(AssertionError):
    """Something is left that was not there before."""


@asynccontextmanager
async def assert_no_leaks(runtime: Runtime | None = None) -> AsyncGenerator[None, None]:
    """Tasks, child processes and descriptors at the end are those of the beginning.

    With a runtime that goes on, whose actors come and go, it is its tokens and the
    child processes: no more of any kind are in use than were. An error of the block is
    raised as it is, and nothing is looked at then.

    Raises:
        Leaked: something is left; the message has all of it, by name.
    """
    before = _Found()
    if runtime is None:
        yield
    else:
        tokens = await _tokens(runtime)
        yield
        await _tokens_back(runtime, tokens)
    problems = before.more_now(all_of_it=runtime is None)
    if problems:
        raise Leaked("left over: " + "; ".join(problems))


class _Found:
    """What there is."""

    def __init__(self) -> None:
        self._tasks = dict(_tasks())
        self._children = _children()
        self._files = _files()

    def more_now(self, *, all_of_it: bool) -> list[str]:
        """What there is besides, in words."""
        now = _Found()
        children = now._children.keys() - self._children.keys()
        processes = [f"process {pid} ({now._children[pid]})" for pid in children]
        if not all_of_it:
            return sorted(processes)
        tasks = [now._tasks[each] for each in now._tasks.keys() - self._tasks.keys()]
        files = [
            f"descriptor {number} ({what})"
            for number, what in sorted(now._files.items())
            if self._files.get(number) != what
        ]
        return [*(f"task {name}" for name in tasks), *sorted(processes), *files]


def _tasks() -> Iterator[tuple[int, str]]:
    """All tasks of this run."""
    root = trio.lowlevel.current_root_task()
    assert root is not None, "trio runs"
    waiting = [root]
    while waiting:
        task = waiting.pop()
        yield id(task), task.name
        for nursery in task.child_nurseries:
            waiting += nursery.child_tasks


def _children() -> dict[int, str]:
    """Child processes of this one, the dead that nobody waited for included."""
    found = {}
    for child in psutil.Process().children():
        try:
            found[child.pid] = f"{child.name()}, {child.status()}"
        except psutil.NoSuchProcess:
            continue
    return found


def _files() -> dict[int, str]:
    for folder in map(Path, _DESCRIPTORS):
        if folder.is_dir():
            return dict(_named(folder))
    return {}


def _named(folder: Path) -> Iterator[tuple[int, str]]:
    for entry in list(folder.iterdir()):
        try:
            status = os.fstat(int(entry.name))
        except OSError:
            continue  # that with which the folder was read
        what = f"{status.st_dev}:{status.st_ino}"
        with suppress(OSError):
            what += f" {os.readlink(entry)}"
        yield int(entry.name), what


async def _tokens(runtime: Runtime) -> dict[str, int]:
    found = await runtime.capacity()
    used = {kind: each.used for kind, each in found.tokens.items()}
    providers = {f"provider {n}": each.used for n, each in found.providers.items()}
    return used | providers


async def _tokens_back(runtime: Runtime, before: dict[str, int]) -> None:
    """They come back within a few turns of the loop after the end of their job."""
    for _ in range(100):
        now = await _tokens(runtime)
        more = {kind: n for kind, n in now.items() if n > before.get(kind, 0)}
        if not more:
            return
        await trio.lowlevel.checkpoint()
    told = ", ".join(f"{n} of {kind}" for kind, n in sorted(more.items()))
    raise Leaked(f"tokens are still in use: {told}")
