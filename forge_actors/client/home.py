"""Where a service lives: its home folder and the socket in it. Standard library only.

The path of a Unix socket has a limit of about a hundred bytes. The sockets of a home
whose path is longer live in a short folder of their own, and a file in the home, named
like the socket with `.path` behind it, says where: the variables that chose the place
may be others for the next caller.
"""

from __future__ import annotations

import json
import os
import stat

from forge_actors.domain.damage import MARKER
from forge_actors.domain.errors import InvalidInput, Refused

MAX_SOCKET_PATH = 100
CONTROL = "control.sock"
STORE = "store.sqlite"
#: Locked by the process that has the home, as long as it has it.
LOCK = "runtime.lock"
#: Written by a service for those who cannot ask it.
STATUS = os.path.join("runtime", "status.json")
MAX_STATUS = 256 * 1024

#: What a trace context is written with.
_OF_TRACE = frozenset("0123456789abcdef-")


def resolve_home(option: str | None = None) -> str:
    """The home as an absolute path: the option, the environment, the default.

    Raises:
        InvalidInput: the option is empty, as that of a variable that is not set.
    """
    if option == "":
        raise InvalidInput("home", "is empty: give a folder, or leave --home out")
    environ = os.environ
    home = option or environ.get("FORGE_CONTROLLER_HOME")
    if not home:
        state = environ.get("XDG_STATE_HOME", "")
        if not os.path.isabs(state):
            state = os.path.join("~", ".local", "state")
        home = os.path.join(state, "forge-actors")
    return os.path.abspath(os.path.expanduser(home))


def own_job(home: str) -> str | None:
    """The job of this home that we are a part of."""
    job = os.environ.get("FORGE_JOB_ID", "")
    own = os.environ.get("FORGE_CONTROLLER_HOME")
    if not own or not (job.isascii() and job.isalnum()):
        return None
    return job if os.path.realpath(own) == os.path.realpath(home) else None


def own_trace() -> str | None:
    """The span that we are a part of, as W3C writes it."""
    trace = os.environ.get("TRACEPARENT", "")
    return trace if len(trace) == 55 and set(trace) <= _OF_TRACE else None


def has_store(home: str) -> bool:
    """Whether a service has ever saved anything there, also if it is damaged now."""
    return any(os.path.exists(os.path.join(home, name)) for name in (STORE, MARKER))


def owner(home: str) -> int | None:
    """The process that has the home, if one does and the system can tell.

    One that starts or ends has it, and so has one that serves nobody (`run --home`).
    """
    return _holder(home)[0]


def serving_pid(home: str) -> int | None:
    """The process that answers requests of this home, also if its socket is gone."""
    pid, serving = _holder(home)
    return pid if serving else None


def published(home: str) -> dict[str, object]:
    """What the service that has the home says of itself in its status file, if it does.

    What a service left there that is gone is not told.
    """
    try:
        with open(os.path.join(home, STATUS), "rb") as file:
            found = json.loads(file.read(MAX_STATUS))
    except (OSError, ValueError, RecursionError):
        return {}
    pid = owner(home)
    ours = isinstance(found, dict) and pid is not None and found.get("pid") == pid
    return found if ours else {}


def _holder(home: str) -> tuple[int | None, bool]:
    """Who has the home, as its lock file says, and whether it answers requests."""
    try:
        with open(os.path.join(home, LOCK), "rb") as lock:
            record = json.loads(lock.read(4096))
            inode = str(os.fstat(lock.fileno()).st_ino)
    except (OSError, ValueError, RecursionError):
        return None, False
    pid = record.get("pid") if isinstance(record, dict) else None
    if not isinstance(pid, int) or not _has_locked(str(pid), inode):
        return None, False
    return pid, record.get("serving") is True


def _has_locked(pid: str, inode: str) -> bool:
    """Whether the lock is held; we do not try it, as that could hinder a start."""
    try:
        with open("/proc/locks", encoding="ascii") as locks:
            for line in locks:
                # number: FLOCK ADVISORY WRITE pid major:minor:inode start end
                words = line.split()
                held = words[1] == "FLOCK" and words[4] == pid
                if held and words[5].rpartition(":")[2] == inode:
                    return True
    except OSError:
        pass
    return False


def socket_path(home: str, name: str = CONTROL) -> str:
    """Where the socket of `home` is, or will be.

    Raises:
        Refused: the home names a place that others could have made.
    """
    # The real one: by a short link and by its long path it has one socket.
    inside = os.path.join(os.path.realpath(home), name)
    if _fits(inside):
        return inside
    try:
        with open(f"{inside}.path", encoding="utf-8", errors="surrogateescape") as note:
            place = note.read().strip()
    except FileNotFoundError:
        place = os.path.join(_short_folder(home), name)
    _check_private(os.path.dirname(place))
    return place


def prepare_socket_path(home: str, name: str = CONTROL) -> str:
    """`socket_path` for the one who will listen: makes the folder, writes the note.

    Raises:
        Refused: the folder exists and others may write to it.
    """
    inside = os.path.join(os.path.realpath(home), name)
    if _fits(inside):
        return inside
    folder = _short_folder(home)
    for made in (os.path.dirname(folder), folder):
        try:
            os.mkdir(made, 0o700)
        except FileExistsError:
            _check_private(made)
    place = os.path.join(folder, name)
    note = f"{inside}.path"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    fresh = os.open(f"{note}.new", flags, 0o600)
    with open(fresh, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(f"{place}\n")
    os.replace(f"{note}.new", note)
    return place


def _fits(path: str) -> bool:
    return len(os.fsencode(path)) <= MAX_SOCKET_PATH


def _short_folder(home: str) -> str:
    # Only homes with long paths pay for this import.
    import hashlib

    digest = hashlib.sha256(os.fsencode(os.path.realpath(home))).hexdigest()[:16]
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = os.path.join(runtime, "forge-actors", digest)
    if os.path.isabs(runtime) and _fits(os.path.join(folder, CONTROL)):
        return folder
    return os.path.join(f"/tmp/forge-actors-{os.getuid()}", digest)  # noqa: S108


def _check_private(folder: str) -> None:
    try:
        found = os.lstat(folder)
    except FileNotFoundError:
        return
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    if not private or found.st_uid != os.geteuid():
        raise Refused(f"{folder} is not a folder that only we can use (mode 0700)")
