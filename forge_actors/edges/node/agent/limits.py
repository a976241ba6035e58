"""Limits of a job's processes that the system keeps, set before its program runs.

`memory` is a limit of each process, of what it allocates (RLIMIT_DATA). The address
space as a whole (RLIMIT_AS) would be the obvious choice, but programs that reserve much
and use little, as the runtimes of Java, Go and JavaScript do, would not even start.

`pids` is a number of processes and threads more than the user has when the job starts:
the system counts those of a user, not those of a job.
"""

from __future__ import annotations

import os
import resource
from typing import Any, NamedTuple

from forge_actors.edges.node.agent import tree


class Limits(NamedTuple):
    """See `domain.launch.ProcessLimits`."""

    nice: int
    memory: int | None
    pids: int | None


def decode(message: dict[str, Any]) -> Limits:
    return Limits(
        int(message.get("nice", 0)), message.get("memory"), message.get("pids")
    )


class Preparation:
    """What the child does to itself. Made before the fork, so that it only calls."""

    def __init__(self, limits: Limits) -> None:
        self._nice = limits.nice
        self._limits: list[tuple[int, tuple[int, int]]] = []
        if limits.memory is not None:
            self._add(resource.RLIMIT_DATA, limits.memory)
        if limits.pids is not None:
            self._add(resource.RLIMIT_NPROC, limits.pids + _tasks_of_user())

    def _add(self, kind: int, value: int) -> None:
        most = resource.getrlimit(kind)[1]
        if most != resource.RLIM_INFINITY:
            value = min(value, most)
        self._limits.append((kind, (value, value)))

    def __call__(self) -> None:
        if self._nice:
            os.nice(self._nice)
        for kind, value in self._limits:
            resource.setrlimit(kind, value)


def _tasks_of_user() -> int:
    """Processes and threads of this user now."""
    own = os.getuid()
    count = 0
    for pid in tree.all_pids():
        try:
            if os.stat(f"/proc/{pid}").st_uid == own:
                count += len(os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208 - fast
        except OSError:
            continue
    return count
