"""Limits of a job's processes that the system keeps, set before its program runs.

In a cgroup with the right controllers they hold for the job as a whole. Elsewhere
`memory` is a limit of each process, of what it allocates (RLIMIT_DATA). The address
space as a whole (RLIMIT_AS) would be the obvious choice, but programs that reserve much
and use little, as the runtimes of Java, Go and JavaScript do, would not even start.
`pids` is then a number of processes and threads more than the user has when the job
starts: the system counts those of a user, not those of a job, and of root none at all.
"""

from __future__ import annotations

import os
import resource
from typing import TYPE_CHECKING, Any, NamedTuple

from forge_actors.edges.node.agent import tree
from forge_actors.edges.node.agent.child import SpawnFailed

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.cgroup import Cgroup


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
    """What the child does to itself. Made before the fork, so that it only calls.

    To be closed when the child has started.
    """

    def __init__(self, limits: Limits, cgroup: Cgroup | None = None) -> None:
        """Prepare these limits, for a process that goes into this cgroup.

        Raises:
            SpawnFailed: one of them cannot be kept.
        """
        self._nice = limits.nice
        self._limits: list[tuple[int, tuple[int, int]]] = []
        self._entry = -1
        memory, pids = limits.memory, limits.pids
        if cgroup is not None:
            self._entry = cgroup.enter()
            if memory is not None and cgroup.limit("memory.max", memory):
                memory = None
            if pids is not None and cgroup.limit("pids.max", pids):
                pids = None
        if memory is not None:
            self._add(resource.RLIMIT_DATA, memory)
        if pids is not None:
            if os.geteuid() == 0:
                self.close()
                raise SpawnFailed("the number of processes cannot be limited for root")
            self._add(resource.RLIMIT_NPROC, pids + _tasks_of_user())

    def close(self) -> None:
        if self._entry >= 0:
            os.close(self._entry)
            self._entry = -1

    def _add(self, kind: int, value: int) -> None:
        most = resource.getrlimit(kind)[1]
        if most != resource.RLIM_INFINITY:
            value = min(value, most)
        self._limits.append((kind, (value, value)))

    def __call__(self) -> None:
        if self._entry >= 0:
            os.write(self._entry, b"0")
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
