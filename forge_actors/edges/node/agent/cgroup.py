"""Control groups (version 2) of agents and jobs, where a folder is ours to use.

What is in a cgroup stays in it whatever it does, is ended by one write without a race,
and is limited as a whole. But putting a process into one makes the kernel wait for all
processors, 12 ms on a calm machine. So the agent enters one, once, in which all that it
starts begins at no cost; jobs get one of their own only if they ask for a limit.

`forge-actors-<instance>/agent` is that of an agent. `<job>.<attempt>` beside it is made
for a job and removed when it is over.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import NamedTuple

_PREFIX = "forge-actors-"
_AGENT = "agent"
#: Tries to lock a new folder. Whoever looks for stale ones has it for a moment.
_CLAIMS = 100
#: What `--memory` and `--pids` need.
CONTROLLERS = frozenset({"memory", "pids"})
#: How systemd says that a cgroup is left to whoever runs in it.
_DELEGATED = ("user.delegate", "trusted.delegate")
#: Bytes read of a list of processes: enough for some ten thousand of them.
_LIST_LIMIT = 1 << 17

Key = tuple[str, int]


class Place(NamedTuple):
    """A folder in which cgroups may be made, and what is missing there, and why."""

    folder: str | None
    #: Those of `CONTROLLERS` that its cgroups can have.
    controllers: frozenset[str]
    reason: str


def find_place() -> Place:
    """Where this process may make cgroups: beside its own one, or in that.

    Nothing is changed. A cgroup with processes in it gives its cgroups no controllers;
    beside ours is a place where systemd was told so.
    """
    own = _own_folder()
    if own is None:
        return Place(None, frozenset(), "there is no cgroup version 2")
    above = os.path.dirname(own)
    beside = _is_delegated(above) and _is_writable(above)
    folder = above if beside else own
    if not _is_writable(folder):
        return Place(None, frozenset(), f"{folder} is not ours to write to")
    offered = _words(os.path.join(folder, "cgroup.controllers"))
    usable = _words(os.path.join(folder, "cgroup.subtree_control"))
    # Processes in the first cgroup of all do not matter.
    if beside or not os.path.exists(os.path.join(folder, "cgroup.type")):
        usable |= offered
    if usable >= CONTROLLERS:
        return Place(folder, CONTROLLERS, "")
    reason = "a unit of systemd needs Delegate=yes and DelegateSubgroup="
    if not offered >= CONTROLLERS:
        reason = f"{folder} has no {' and '.join(sorted(CONTROLLERS - offered))}"
    return Place(folder, usable & CONTROLLERS, reason)


class Inside(NamedTuple):
    """A cgroup that an agent has made, seen from a process in it."""

    instance: str
    #: Of all cgroups of that agent, as the kernel names it.
    path: str
    #: The attempt it was made for; None for the one that the agent itself is in.
    key: Key | None

    def folder(self) -> str | None:
        """That of the cgroup; None where it is mounted nowhere."""
        name = _AGENT if self.key is None else _name(self.key)
        return _folder(f"{self.path}/{name}")

    def agent_folder(self) -> str | None:
        """That of all cgroups of the agent."""
        return _folder(self.path)


def of_process(pid: int) -> list[Inside]:
    """The cgroups of agents and jobs that a process is in, the outermost first.

    There are several where a job starts agents itself.
    """
    path = _path_of(str(pid))
    if "/" + _PREFIX not in path:
        return []
    found: list[Inside] = []
    parts = path.split("/")
    for number, part in enumerate(parts[:-1]):
        if not part.startswith(_PREFIX):
            continue
        # A job may make cgroups of its own below.
        name = parts[number + 1]
        job, _, attempt = name.rpartition(".")
        key = (job, int(attempt)) if attempt.isdecimal() else None
        if key is not None or name == _AGENT:
            above = "/".join(parts[: number + 1])
            found.append(Inside(part.removeprefix(_PREFIX), above, key))
    return found


def is_abandoned(folder: str) -> bool:
    """Whether the agent whose cgroups these are is gone: nobody holds the lock."""
    lock = _lock(folder, fcntl.LOCK_SH)
    if lock < 0:
        return False
    os.close(lock)
    return True


def remove_abandoned(folder: str) -> None:
    """Remove the cgroups of an agent that is gone, but those somebody is still in."""
    lock = _lock(folder, fcntl.LOCK_SH)
    if lock >= 0:
        _remove_below(folder)
        os.close(lock)


def remove_stale() -> None:
    """Remove the cgroups of agents that are gone, near to where we are.

    What somebody is still in stays.
    """
    own = _own_folder()
    if own is None:
        return
    found: list[str] = []
    for base in (own, os.path.dirname(own)):
        with contextlib.suppress(OSError):
            found += [e.path for e in os.scandir(base) if e.name.startswith(_PREFIX)]
    for folder in found:
        remove_abandoned(folder)


class Cgroup:
    """One job's cgroup. Whatever it cannot do, the job does without."""

    __slots__ = ("folder",)

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def limit(self, name: str, value: int) -> bool:
        """Set `memory.max` or `pids.max`. False where that is not ours to set."""
        return _write(os.path.join(self.folder, name), b"%d" % value)

    def enter(self) -> int:
        """A descriptor that puts into the cgroup who writes `0` to it."""
        path = os.path.join(self.folder, "cgroup.procs")
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC)

    def pids(self) -> list[int]:
        """Also those in cgroups that the job made below."""
        found: list[int] = []
        for folder, _, _ in os.walk(self.folder):
            text = _read(os.path.join(folder, "cgroup.procs"), _LIST_LIMIT)
            # Cut off at the limit, the last number may be the beginning of another.
            found += [int(pid) for pid in text.rpartition("\n")[0].split()]
        return [pid for pid in found if pid]  # 0 is one that we cannot see

    def populated(self) -> bool:
        """Whether a process that is not defunct is in it. False if it is removed."""
        return "populated 1" in _read(os.path.join(self.folder, "cgroup.events"))

    def kill(self) -> bool:
        """End all that is in it at once. False where the kernel is too old for it."""
        return _write(os.path.join(self.folder, "cgroup.kill"), b"1")

    def out_of_memory(self) -> bool:
        """Whether the kernel killed something of it for its `memory.max`."""
        text = _read(os.path.join(self.folder, "memory.events"))
        counts = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
        return int(counts.get("oom_kill", 0)) > 0

    def remove(self) -> None:
        """Remove it, unless somebody is still in it."""
        _remove_below(self.folder)


class Cgroups:
    """The cgroups of one agent, which holds a lock on theirs: it is not gone."""

    def __init__(self, instance: str) -> None:
        self._place = find_place()
        self._folder = os.path.join(self._place.folder or "", _PREFIX + instance)
        self._held = -1
        #: Where this process was before it entered its own.
        self._left: str | None = None
        self._handed_down = False
        remove_stale()

    def enter(self) -> bool:
        """Put this process, and all it will start, into a cgroup. False if it cannot.

        It has no limits and gets no controllers, so that it may hold processes.
        """
        before = _own_folder()
        folder = os.path.join(self._folder, _AGENT)
        try:
            if before is None or not self._claim():
                return False
            os.mkdir(folder)
        except OSError:
            return False
        if _write(os.path.join(folder, "cgroup.procs"), b"0"):
            self._left = before
            return True
        _remove_below(folder)
        return False

    def _claim(self) -> bool:
        """Make the folder, and lock it for as long as this process lives.

        Raises:
            OSError: none can be made here.
        """
        if self._place.folder is None:
            return False
        for _ in range(_CLAIMS):
            if self._held >= 0:
                break
            with contextlib.suppress(FileExistsError):
                os.mkdir(self._folder)
            lock = _lock(self._folder, fcntl.LOCK_EX)
            if lock >= 0 and os.path.isdir(self._folder):
                self._held = lock
            else:  # taken for a stale one just now
                if lock >= 0:
                    os.close(lock)
                os.sched_yield()
        return self._held >= 0

    def make(self, key: Key) -> Cgroup | None:
        """A new cgroup for an attempt; None where there can be none."""
        if self._place.folder is None or "/" in key[0]:
            return None
        cgroup = Cgroup(os.path.join(self._folder, _name(key)))
        try:
            if not self._claim():
                return None
            if not self._handed_down:
                self._handed_down = True
                self._hand_down(self._place.folder)
                self._hand_down(self._folder)
            os.mkdir(cgroup.folder)
        except OSError:
            return None
        return cgroup

    def _hand_down(self, folder: str) -> None:
        """Let the cgroups in a folder have limits; what is refused is left out."""
        for name in self._place.controllers:
            _write(os.path.join(folder, "cgroup.subtree_control"), b"+" + name.encode())

    def close(self) -> None:
        """Leave, and remove what is empty. The rest is removed when found stale."""
        if self._left is not None:
            _write(os.path.join(self._left, "cgroup.procs"), b"0")
        if self._held >= 0:
            _remove_below(self._folder)
            os.close(self._held)


def _lock(folder: str, how: int) -> int:
    """A descriptor with the lock; -1 if somebody has it.

    The agent has it for itself. Whoever only looks for abandoned ones shares it.
    """
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return -1
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return -1
    return fd


def _remove_below(folder: str) -> None:
    for path, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(path)


def _name(key: Key) -> str:
    return f"{key[0]}.{key[1]}"


def _own_folder() -> str | None:
    return _folder(_path_of("self"))


def _path_of(process: str) -> str:
    for line in _read(f"/proc/{process}/cgroup").splitlines():
        if line.startswith("0::"):
            return line.removeprefix("0::")
    return ""


def _folder(path: str) -> str | None:
    """Where a cgroup's path is mounted."""
    if not path or path.startswith("/.."):  # above what we may see
        return None
    for line in _read("/proc/self/mountinfo", 1 << 20).splitlines():
        fields, _, kind = line.partition(" - ")
        if kind.startswith("cgroup2 "):
            root, mount = fields.split(" ")[3:5]
            inside = path.removeprefix(root.rstrip("/"))
            if inside.startswith("/"):
                return (mount + inside).rstrip("/")
    return None


def _is_writable(folder: str) -> bool:
    procs = os.path.join(folder, "cgroup.procs")
    return os.access(folder, os.W_OK | os.X_OK) and os.access(procs, os.W_OK)


def _is_delegated(folder: str) -> bool:
    for name in _DELEGATED:
        with contextlib.suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return True
    return False


def _words(path: str) -> frozenset[str]:
    return frozenset(_read(path).split())


def _read(path: str, limit: int = 1 << 16) -> str:
    """A file of the kernel's; nothing if it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    data = b""
    try:
        while len(data) < limit:
            part = os.read(fd, limit - len(data))
            if not part:
                break
            data += part
    except OSError:
        return ""
    finally:
        os.close(fd)
    return data.decode(errors="replace")


def _write(path: str, data: bytes) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(fd, data)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
