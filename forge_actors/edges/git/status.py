"""Looks at a checkout by one git process: bounded, ended as a whole, without a trace.

It takes no lock and writes nothing: `--no-optional-locks` keeps git from refreshing the
index, so that whoever works there never finds it locked by us. Nothing that belongs to
the repository is run: no hook, no watcher of files, no fetch of what a partial clone
lacks. Filters are the exception: git needs them to tell whether a file was changed.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.git_status import (
    OPERATIONS,
    Sample,
    parse_status,
    read_operation,
)
from forge_actors.domain.redaction import bounded, redact
from forge_actors.edges.git.checkout import clean_environment
from forge_actors.edges.git.spawning import spawn

if TYPE_CHECKING:
    from forge_actors.domain.git_status import GitStatus
    from forge_actors.domain.repositories import Repository

log = logging.getLogger(__name__)

#: Bytes of output that are read; of a longer one that much is counted.
MAX_OUTPUT = 512 * 1024
#: Bytes of stderr that are kept, and characters that are told of its last line.
MAX_STDERR = 16 * 1024
MAX_REASON = 300
#: Seconds that what was killed may take to be gone.
KILL_SECONDS = 2.0

_OPTIONS = (
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
)
#: Names of renamed files are of no interest, and finding them costs. What changed in
#: submodules would take a process of its own for each.
_STATUS = (
    *("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal"),
    *("--no-renames", "--ignore-submodules=dirty"),
    *("--", ":(top,exclude,glob)**/.ai/harness/**"),
)


class GitSampler:
    """The port `StatusSampler` on the git program found on the PATH."""

    def __init__(self) -> None:
        self._environment = {
            **clean_environment(),
            "GIT_OPTIONAL_LOCKS": "0",
            # A partial clone is looked at as it is: nothing may fetch the rest.
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "none",
        }
        #: What could not be killed, by repository: the kernel holds it, in a disk that
        #: does not answer. Another one would only join it.
        self._stuck: dict[str, _Process] = {}

    async def sample(self, repository: Repository, limit: float) -> Sample:
        """See the port."""
        began = time.thread_time()
        if (stuck := self._stuck.get(repository.id)) is not None:
            if not stuck.reap():
                return _failed(f"git (process {stuck.pid}) hangs in it, unkillable", 0)
            del self._stuck[repository.id]
        problem = _misplaced(repository)
        if problem is not None:
            return _failed(problem, time.thread_time() - began)
        try:
            process = await self._start(repository.path)
        except OSError as error:
            return _failed(_cannot_start(error), time.thread_time() - began)
        ours = time.thread_time() - began
        output = None
        try:
            with trio.move_on_after(limit):
                output = await process.read()
        finally:
            if not process.reap():
                with trio.CancelScope(shield=True):
                    await self._end(repository.id, process)
        ours += process.cost
        if output is None:
            return _failed(f"git took longer than {limit:g} s", ours)
        began = time.thread_time()
        status, problem = _outcome(repository.path, output, process)
        return Sample(ours + time.thread_time() - began, status, problem)

    async def _start(self, path: str) -> _Process:
        """One git process.

        Raises:
            OSError: it cannot be started.
        """
        output, theirs = os.pipe2(os.O_CLOEXEC)
        errors = -1
        try:
            os.set_blocking(output, False)
            # Not a pipe: nobody would empty it, and git would wait.
            errors = _sized_file(MAX_STDERR)
            argv = ("git", "-C", path, *_OPTIONS, *_STATUS)
            # A checkout that lost its .git is not one of a repository around it.
            around = {"GIT_CEILING_DIRECTORIES": os.path.dirname(path)}
            environment = {**self._environment, **around}
            pid = await trio.to_thread.run_sync(
                spawn, argv, environment, theirs, errors
            )
            return _Process(pid, _handle(pid), output, errors)
        except BaseException:
            os.close(output)
            if errors >= 0:
                os.close(errors)
            raise
        finally:
            os.close(theirs)

    async def _end(self, repo: str, process: _Process) -> None:
        process.kill()
        with trio.move_on_after(KILL_SECONDS):
            await process.exited()
        if not process.reap():
            log.warning("git (process %d) cannot be killed", process.pid)
            self._stuck[repo] = process


class _Process:
    """One git process, the first of a session of its own."""

    def __init__(self, pid: int, handle: int, output: int, errors: int) -> None:
        self.pid = pid
        self._handle = handle
        self._output = output
        self._errors = errors
        #: CPU seconds, exit code and last words, once it is gone.
        self.cost = 0.0
        self.code: int | None = None
        self.said = ""
        # It never takes a processor from who runs. (To lower the priority of a process
        # that runs can take milliseconds, in which all of us would stand still.)
        with suppress(OSError):
            os.sched_setscheduler(self.pid, os.SCHED_BATCH, os.sched_param(0))

    async def read(self) -> bytes:
        """All that it prints, until its end; longer than the limit if that is more."""
        pieces: list[bytes] = []
        size = 0
        while size <= MAX_OUTPUT:
            await trio.lowlevel.wait_readable(self._output)
            with suppress(BlockingIOError):
                piece = os.read(self._output, MAX_OUTPUT)
                if not piece:
                    await self.exited()
                    break
                pieces.append(piece)
                size += len(piece)
        return b"".join(pieces)

    async def exited(self) -> None:
        await trio.lowlevel.wait_readable(self._handle)

    def kill(self) -> None:
        """End it and what it started: whatever is in its session."""
        killed: set[int] = set()
        # What was killed starts nothing more, so this comes to an end.
        while others := _session(self.pid) - killed:
            for pid in others:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            killed |= others

    def reap(self) -> bool:
        """Learn how it ended and let go of it; False if it has not ended."""
        if self.code is not None:
            return True
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        if os.waitid(os.P_PID, self.pid, flags) is None:
            return False
        # What it left behind, as long as nobody else can have its number.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        _, status, usage = os.wait4(self.pid, 0)
        self.code = os.waitstatus_to_exitcode(status)
        self.cost = usage.ru_utime + usage.ru_stime
        if self.code:
            text = os.pread(self._errors, MAX_STDERR, 0).rstrip(b"\0")
            lines = text.decode("utf-8", "replace").strip().splitlines()
            self.said = lines[-1].removeprefix("fatal: ") if lines else ""
        for fd in (self._handle, self._output, self._errors):
            os.close(fd)
        return True


def _sized_file(size: int) -> int:
    """A file without a name that never gets larger: what is more cannot be written."""
    fd = os.memfd_create("git-stderr", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.truncate(fd, size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _handle(pid: int) -> int:
    """A descriptor of a process just started, which is ended if there is none left."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def _session(leader: int) -> set[int]:
    """The processes of a session that have not ended, and its leader in any case."""
    found = {leader}
    with os.scandir("/proc") as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    for pid in pids:
        with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
            # pid (name) state parent group session ...; the name may hold anything
            fields = file.read().rpartition(b") ")[2].split(b" ", 4)
            if int(fields[3]) == leader and fields[0] not in (b"Z", b"X"):
                found.add(pid)
    return found


def _misplaced(repository: Repository) -> str | None:
    """Why its folder cannot be looked at, as far as that is seen without git."""
    if not os.path.lexists(os.path.join(repository.path, ".git")):
        if os.path.isdir(repository.path):
            return f"{repository.path} is no git work tree any more"
        return f"its folder is gone: {repository.path}"
    try:
        status = os.stat(repository.common_dir)
    except OSError as error:
        return f"{repository.common_dir}: {error.strerror}"
    if (status.st_dev, status.st_ino) != (repository.device, repository.inode):
        return (
            f"another repository is at {repository.path} by now: "
            f"forge-actors repo show {repository.name}"
        )
    return None


def _outcome(
    path: str, output: bytes, process: _Process
) -> tuple[GitStatus | None, str | None]:
    """The status, or why there is none."""
    whole = len(output) <= MAX_OUTPUT
    if whole and process.code:
        said = process.said or f"git ended with {process.code} and gave no reason"
        return None, _told(said)
    try:
        operation = read_operation(_found(_git_dir(path)))
        return parse_status(output[:MAX_OUTPUT], whole=whole, operation=operation), None
    except (OSError, ValueError) as error:
        return None, _told(str(error))


def _git_dir(path: str) -> str:
    """The git directory of a checkout: that of a linked one is named in a file."""
    place = os.path.join(path, ".git")
    if not stat.S_ISREG(os.stat(place).st_mode):
        return place
    with open(place, "rb") as file:
        name = os.fsdecode(file.read(4096).removeprefix(b"gitdir:").strip())
    return os.path.join(path, name)


def _found(git_dir: str) -> list[str]:
    names = (name for name, _ in OPERATIONS)
    return [name for name in names if os.path.lexists(os.path.join(git_dir, name))]


def _cannot_start(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "git is not installed"
    return f"git cannot be started: {error.strerror}"


def _failed(problem: str, cost: float) -> Sample:
    return Sample(cost, problem=_told(problem))


def _told(text: str) -> str:
    return bounded(redact(" ".join(text.split())), MAX_REASON)
