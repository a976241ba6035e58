"""Finding the processes of a job, and signalling exactly those.

A job may start anything: children in sessions of their own, daemons that forked twice,
programs with an emptied environment. The agent is their subreaper, so whatever loses
its parent becomes a child of the agent. What a process belongs to is told, in this
order, by the job's mark in its environment, by its session or group, by its parent.

Without /proc only the process group can be seen; it stands in as one process with a
negative pid, which is what kill(2) makes of it too.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

HAS_PROC = os.path.exists("/proc/self/stat")
# Held open: every job that ends asks for the last pid.
_LOADAVG = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC) if HAS_PROC else -1
_HAS_PIDFD = hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal")
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")

#: The number of the first pid namespace, from which all processes can be seen.
FIRST_NAMESPACE = 0xEFFFFFFC
#: Environments longer than this are searched only up to here.
_ENVIRON_LIMIT = 1 << 20
#: Readings of /proc for one snapshot. A machine that forks all the time needs an end.
_PASSES = 4
#: Tries to read an environment that looks empty: see `mark_of`.
_ENVIRON_TRIES = 3

Mark = tuple[str, int]


class Process(NamedTuple):
    """One line of /proc. `start` is in clock ticks since boot.

    `stopped`: by a signal or a debugger. `held`: it waits in the kernel, where signals
    act only when it comes back.
    """

    pid: int
    parent: int
    group: int
    session: int
    start: int
    defunct: bool
    name: str
    stopped: bool = False
    held: bool = False


def all_pids() -> list[int]:
    names = os.listdir("/proc")  # noqa: PTH208 - names are all we need, fast
    return [int(name) for name in names if name.isdecimal()]


def read_process(pid: int) -> Process | None:
    """The process with this pid now, or None."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        line = os.read(fd, 1024)
    except OSError:
        return None
    finally:
        os.close(fd)
    # The name may hold spaces and brackets, so its end is the last bracket.
    begin, end = line.index(b"("), line.rindex(b")")
    rest = line[end + 2 :].split(None, 20)
    return Process(
        pid,
        int(rest[1]),
        int(rest[2]),
        int(rest[3]),
        int(rest[19]),
        # A program whose first thread has ended shows as defunct while others run on.
        rest[0] in (b"Z", b"X") and int(rest[17]) <= 1,
        line[begin + 1 : end].decode(errors="replace"),
        rest[0] in (b"T", b"t"),
        rest[0] == b"D",
    )


def boot_id() -> str:
    """A name that each boot of the machine has anew; empty where there is none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def pid_namespace() -> int:
    """What tells our pid namespace from others on this machine; 0 without any."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def boot_ns() -> int:
    """Nanoseconds since boot on the clock that start ticks are taken from."""
    return time.clock_gettime_ns(_BOOT_CLOCK)


def start_between(pid: int, before: int, after: int) -> int:
    """`start_ticks` of a child that was started between two readings of `boot_ns`.

    Nearly always both lie in one tick, and that tick is the answer. Reading it from
    /proc costs as much as all else we do for a short job.
    """
    if HAS_PROC and before // _TICK_NS == after // _TICK_NS:
        return before // _TICK_NS
    return start_ticks(pid)


def start_ticks(pid: int) -> int:
    """When the process began, in clock ticks since boot; 0 if that cannot be known."""
    process = read_process(pid)
    return process.start if process else 0


def nested_pids(pid: int) -> list[int]:
    """The pids of a process in the pid namespaces below ours, the outermost first."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("NSpid:"):
                    return [int(number) for number in line.split()[2:]]
    except OSError:  # it is gone
        pass
    return []


def lives(pid: int, start: int) -> bool:
    """Whether the process that began then still runs; a defunct one does not."""
    process = read_process(pid)
    return process is not None and process.start == start and not process.defunct


def mark_of(pid: int) -> Mark | None:
    """The job and attempt named in the environment of a process."""
    for _ in range(_ENVIRON_TRIES):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                environ = b"\0" + file.read(_ENVIRON_LIMIT)
        except OSError:
            return None
        # In the middle of exec a process has no environment for some microseconds,
        # exactly like one that was started with none; looking again tells them apart.
        if len(environ) > 1:
            break
    job = _variable(environ, b"\0FORGE_JOB_ID=")
    attempt = _variable(environ, b"\0FORGE_ATTEMPT=")
    return (job, int(attempt)) if job and attempt.isdecimal() else None


def _variable(environ: bytes, name: bytes) -> str:
    begin = environ.find(name)
    if begin < 0:
        return ""
    begin += len(name)
    return environ[begin : environ.find(b"\0", begin)].decode(errors="replace")


def send(process: Process, number: int) -> bool:
    """Signal exactly this process. False if it is gone.

    Reading /proc and then calling kill is the obvious way; if the process ends in
    between and its pid is used again, a stranger is signalled. A pidfd holds on to one
    process: open it first, look who that is, then signal through it.

    Raises:
        PermissionError: it belongs to somebody else.
    """
    try:
        if process.pid < 0 or not _HAS_PIDFD:
            if process.pid > 0 and start_ticks(process.pid) != process.start:
                return False
            os.kill(process.pid, number)
            return True
        fd = os.pidfd_open(process.pid)
        try:
            if start_ticks(process.pid) != process.start:
                return False
            signal.pidfd_send_signal(fd, number)
        finally:
            os.close(fd)
    except ProcessLookupError:
        return False
    return True


def last_pid() -> int:
    """The pid given out last, also to processes that are gone again; 0 if unknown."""
    if not HAS_PROC:
        return 0
    return int(os.pread(_LOADAVG, 128, 0).rsplit(None, 1)[1])


def is_child(pid: int) -> bool:
    """Whether it is a child of ours, defunct or not. Reaps nothing."""
    try:
        # A tenth of what it costs to read the same from /proc.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except OSError:
        return False
    return True


def group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Snapshot:
    """The processes of this machine at one time, none that lived throughout missing.

    `seen` is called with each one right after it was read: a moment later one that
    forks all the time would be another. `steady`: none can have come and gone meanwhile
    that has left a child which is not here.
    """

    def __init__(self, seen: Callable[[Process], object] | None = None) -> None:
        self.processes: dict[int, Process] = {}
        self.steady = False
        self._seen = seen
        self._marks: dict[int, Mark | None] = {}
        self._children: dict[int, list[Process]] = {}
        if not HAS_PROC:
            return
        # Reading /proc takes milliseconds. A process that forks and ends meanwhile can
        # be missed together with its child, when the child's pid lies before the place
        # already read. So it is read again until no pid was given out meanwhile.
        for _ in range(_PASSES):
            before = last_pid()
            self._read_unknown()
            self.steady = last_pid() == before
            if self.steady:
                break
        self._read_again_without_parent()
        for process in self.processes.values():
            self._children.setdefault(process.parent, []).append(process)

    def _read_unknown(self) -> None:
        for pid in all_pids():
            if pid not in self.processes:
                process = read_process(pid)
                if process is not None:
                    self.processes[process.pid] = process
                    if self._seen is not None:
                        self._seen(process)

    def _read_again_without_parent(self) -> None:
        """Correct what became an orphan while we read.

        A child is read, then its parent ends before it is read itself: the child would
        hang below nobody. By now it has its new parent.
        """
        for process in list(self.processes.values()):
            if process.parent and process.parent not in self.processes:
                now = read_process(process.pid)
                if now is None:
                    del self.processes[process.pid]
                else:
                    self.processes[process.pid] = now

    def mark(self, pid: int) -> Mark | None:
        if pid not in self._marks:
            self._marks[pid] = mark_of(pid)
        return self._marks[pid]

    def children(self, pid: int) -> list[Process]:
        return self._children.get(pid, [])

    def with_descendants(self, roots: list[Process], without: int = 0) -> list[Process]:
        """The roots and everything below them that is alive.

        Not the process `without`, nor what only it leads to.
        """
        found: dict[int, Process] = {}
        waiting = list(roots)
        while waiting:
            process = waiting.pop()
            if process.pid not in found and process.pid != without:
                found[process.pid] = process
                waiting += self.children(process.pid)
        return [process for process in found.values() if not process.defunct]
