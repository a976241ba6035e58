"""The machine: how much memory and processor time is left, and who we are on it."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.open_files import OpenFiles

if TYPE_CHECKING:
    from collections.abc import Callable

#: Percent of the last 10 s in which every task waited for memory; more is pressure.
MAX_MEMORY_STALL = 10.0

#: Seconds by which a wall clock that was set differs at least: less is its drift.
LEAST_STEP = 1.0

_MIB = 1024 * 1024
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PSI = Path("/proc/pressure/memory")
_CGROUPS = Path("/sys/fs/cgroup")


class Clock:
    """Time that only goes on, begun by the wall clock.

    A clock that is set, and a machine that sleeps, leave it alone: nothing is due, old
    or over because of them.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._begin = wall() - steady()

    def now(self) -> float:
        return self._steady() + self._begin

    def wall(self) -> float:
        return self._wall()

    def ahead(self) -> float:
        ahead = self._wall() - self.now()
        return ahead if abs(ahead) >= LEAST_STEP else 0.0


class PressureGauge:
    """Says why the machine is under pressure, or None. Calling it reads the machine."""

    def __init__(self, *, min_free_memory_mb: int, max_load_per_cpu: float) -> None:
        self._min_free = min_free_memory_mb
        self._max_load = max_load_per_cpu
        self._cpus = usable_cpus()
        self._cgroup = _own_cgroup()

    def __call__(self) -> str | None:
        free = psutil.virtual_memory().available // _MIB
        if self._cgroup is not None:
            free = min(free, _free_in(self._cgroup) // _MIB)
        if free < self._min_free:
            return f"{free} MB of memory are free, {self._min_free} are wanted"
        load = psutil.getloadavg()[0] / self._cpus
        if load > self._max_load:
            return f"the load is {load:.2f} per CPU, {self._max_load:.2f} is the limit"
        stall = _memory_stall()
        if stall > MAX_MEMORY_STALL:
            return f"processes waited for memory {stall:.0f} % of the last 10 s"
        return None


def own_identity() -> ProcessIdentity:
    """What names this process for ever; zeros where there is no /proc to tell it."""
    try:
        boot_id = _BOOT_ID.read_text("ascii").strip()
        _, start_ticks = _state(os.getpid())
        namespace = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return ProcessIdentity("", os.getpid(), 0)
    return ProcessIdentity(boot_id, os.getpid(), start_ticks, namespace)


def lives(process: ProcessIdentity) -> bool:
    """Whether a process is seen to run: one in another pid namespace never is."""
    me = own_identity()
    if (process.boot_id, process.namespace) != (me.boot_id, me.namespace):
        return False
    if not me.boot_id:
        return _is_there(process.pid)
    try:
        state, start_ticks = _state(process.pid)
    except OSError:
        return False
    return start_ticks == process.start_ticks and state not in (b"Z", b"X")


def _state(pid: int) -> tuple[bytes, int]:
    """The state of a process, and when it began."""
    # After the name, which is in brackets and may hold anything.
    words = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return words[0], int(words[19])


def _is_there(pid: int) -> bool:
    if pid <= 0:  # a group of processes, to the system
        return False
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError) as error:
        return isinstance(error, PermissionError)
    return True


#: Open files that this process may have, however many the system would let it.
MOST_FILES = 65_536
#: What it was allowed when it began, once it allowed itself more.
_given: list[int] = []


def open_files() -> OpenFiles:
    """What this process, and the node agents it starts, may have open at once."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = None if soft == resource.RLIM_INFINITY else soft
    return OpenFiles(limit, _given[0] if _given else None)


def raise_open_files() -> OpenFiles:
    """Have as many open as the system allows; those that this process starts as
    agents, and so their jobs, are to have what it had: some programs close every file
    they could have, or know no numbers beyond 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        _given.append(soft)
    return open_files()


def resident_bytes() -> int:
    """The memory that this process has now."""
    return psutil.Process().memory_info().rss


def usable_cpus() -> int:
    """The processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return psutil.cpu_count() or 1


def _memory_stall() -> float:
    """`full avg10` of Linux's pressure stall information; 0 where there is none."""
    try:
        text = _PSI.read_text("ascii")
    except OSError:
        return 0.0
    for line in text.splitlines():
        if line.startswith("full avg10="):
            return float(line.removeprefix("full avg10=").split(maxsplit=1)[0])
    return 0.0


def _own_cgroup() -> Path | None:
    """The folder of the cgroup (version 2) this process is in, if it limits memory."""
    try:
        text = Path("/proc/self/cgroup").read_text("utf-8")
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith("0::"):
            folder = _CGROUPS / line.removeprefix("0::").strip().lstrip("/")
            for candidate in (folder, *folder.parents):
                if candidate == _CGROUPS.parent:
                    return None
                if _number(candidate / "memory.max") is not None:
                    return candidate
    return None


def _free_in(cgroup: Path) -> int:
    limit = _number(cgroup / "memory.max")
    used = _number(cgroup / "memory.current")
    if limit is None or used is None:
        return 1 << 62
    return max(0, limit - used + _reclaimable(cgroup))


def _reclaimable(cgroup: Path) -> int:
    """Bytes of file cache that the kernel drops before it runs out of memory."""
    try:
        text = (cgroup / "memory.stat").read_text("ascii")
    except OSError:
        return 0
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == "inactive_file":
            return int(value)
    return 0


def _number(path: Path) -> int | None:
    try:
        text = path.read_text("ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
