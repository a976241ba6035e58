"""The process of the clean-up program, and the conversation with it.

It is a child of its own session: last in line for the processor and the disk, limited
in memory and time, with nothing of ours open but its three pipes. It is ended as a
tree: its group, and whatever carries the mark in its environment.
"""

from __future__ import annotations

import os
import resource
import secrets
import signal
import subprocess
import sys
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import psutil
import trio

from forge_actors.domain.cleaning import CLASSES
from forge_actors.domain.errors import CleanUpFailed, ForgeError
from forge_actors.domain.maintenance import MAX_NAMED, CleanResult
from forge_actors.domain.redaction import bounded
from forge_actors.edges.cleanup import wire
from forge_actors.edges.cleanup.marked import GRACE, MARK, end_marked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.cleaning import CleanClass
    from forge_actors.domain.maintenance import Books, CleanLimits, CleanOrder

PROGRAM = "forge_actors.runtime.cleanup"
#: Seconds a run may take beyond those in which it begins something.
OVERTIME = 20.0
#: Bytes of what it says to people that are looked at, the last ones.
MAX_COMPLAINT = 4096
#: Characters of it that an error repeats.
SHOWN = 300
NICE = 19
#: Variables of ours that it may know; and those for the language.
KEPT = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "XDG_CONFIG_HOME"),
    # Where git finds the settings of the user, such as who commits.
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"),
)
#: Says to whoever looks what the process is for.
WORKER = "FORGE_RUNTIME_MAINTENANCE_WORKER"
#: Visits of one run.
MOST = len(CLASSES)
_READ = 64 << 10


class CleanUpProgram:
    """The port `CleanUp`: one process for each run."""

    def __init__(
        self, command: tuple[str, ...] | None = None, *, overtime: float = OVERTIME
    ) -> None:
        # `-P`: only what is in its path, which is ours, and nothing of the folder that
        # it starts in.
        self._command = command or (sys.executable, "-P", "-m", PROGRAM)
        self._overtime = overtime
        #: That of the run that goes on.
        self.pid: int | None = None

    async def run(self, order: CleanOrder, books: Books) -> CleanResult:
        """See the port."""
        mark = secrets.token_hex(16)
        try:
            child = _Child(self._command, _environment(mark), order)
        except OSError as error:
            raise CleanUpFailed(
                f"the clean-up could not be started: {error.strerror}"
            ) from None
        self.pid = child.process.pid
        talk = _Talk(books, dry_run=order.request.dry_run)
        limit = trio.CancelScope()
        limit.deadline = trio.current_time() + order.limits.seconds + self._overtime
        try:
            with limit:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(child.hear_complaints)
                    try:
                        await talk.hold(child, order)
                        await child.wait()
                    except CleanUpFailed as error:
                        talk.failure = str(error)
                    nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await child.end(mark)
            self.pid = None
        if talk.done:
            return talk.result
        raise CleanUpFailed(_why(talk, child, limit), talk.result)


class _Child:
    """One process, with what it says and what it is told."""

    def __init__(
        self,
        command: tuple[str, ...],
        environment: Mapping[str, str],
        order: CleanOrder,
    ) -> None:
        told, tell = os.pipe()
        heard, say = os.pipe()
        complaints, complain = os.pipe()
        try:
            # In this thread: the system ends the child when the thread that started it
            # ends, and those of a pool come and go.
            self.process = subprocess.Popen(
                command,
                stdin=told,
                stdout=say,
                stderr=complain,
                cwd="/",
                env=environment,
                start_new_session=True,
            )
        except BaseException:
            for fd in (tell, heard, complaints):
                os.close(fd)
            raise
        finally:
            for fd in (told, say, complain):
                os.close(fd)
        self._in = trio.lowlevel.FdStream(tell)
        self._out = trio.lowlevel.FdStream(heard)
        self._err = trio.lowlevel.FdStream(complaints)
        self.complaint = b""
        self._lines: deque[bytes] = deque()
        #: The beginning of a line.
        self._rest = b""
        # Who has named worktrees waits for them.
        if not order.request.worktrees:
            _put_last_in_line(self.process.pid)
        _limit(self.process.pid, order.limits)

    async def tell(self, line: bytes) -> None:
        with suppress(trio.BrokenResourceError):  # it has ended: the reader learns it
            await self._in.send_all(line + b"\n")

    async def line(self) -> bytes | None:
        """What it says next; None: nothing more.

        Raises:
            CleanUpFailed: it is too long.
        """
        while not self._lines:
            data = await self._out.receive_some(_READ)
            if not data:
                return None
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._lines.extend(lines)
            if len(self._rest) > wire.MAX_LINE:
                raise CleanUpFailed("the clean-up is not understood: it says too much")
        return self._lines.popleft()

    async def hear_complaints(self) -> None:
        while data := await self._err.receive_some(_READ):
            self.complaint = (self.complaint + data)[-MAX_COMPLAINT:]

    async def wait(self) -> None:
        """Until the process has ended. It is there as a dead one after that."""
        try:
            fd = os.pidfd_open(self.process.pid)
        except (AttributeError, OSError):
            wait = self.process.wait
            await trio.to_thread.run_sync(wait, abandon_on_cancel=True)
            return
        try:
            await trio.lowlevel.wait_readable(fd)
        finally:
            os.close(fd)

    async def end(self, mark: str) -> None:
        """End all that there is of it."""
        await self._in.aclose()
        if self.process.poll() is None:
            self._signal(signal.SIGTERM)
            with trio.move_on_after(GRACE):
                await self.wait()
        self._signal(signal.SIGKILL)
        await trio.to_thread.run_sync(self.process.wait)
        await trio.to_thread.run_sync(end_marked, mark)
        # What it said last is there by now, and says best why it ended.
        with trio.move_on_after(GRACE):
            await self.hear_complaints()
        await self._out.aclose()
        await self._err.aclose()

    def _signal(self, number: signal.Signals) -> None:
        # Its number is that of its group, which nobody else gets while one is in it.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


class _Talk:
    """The conversation of one run, and what came out of it."""

    def __init__(self, books: Books, *, dry_run: bool) -> None:
        self._books = books
        self.result = CleanResult(dry_run=dry_run)
        self.done = False
        #: Why it had to be broken off.
        self.failure: str | None = None
        #: The class whose visit lasts.
        self.visits: CleanClass | None = None

    async def hold(self, child: _Child, order: CleanOrder) -> None:
        """Give the order, and answer until it has been done.

        Raises:
            CleanUpFailed: what is said is not understood.
        """
        await child.tell(wire.encode_order(order))
        while (line := await child.line()) is not None:
            try:
                said = wire.decode_said(line)
            except (msgspec.DecodeError, RecursionError) as error:
                raise CleanUpFailed(
                    f"the clean-up is not understood: {error}"
                ) from None
            if isinstance(said, wire.Done):
                self.result.error, self.done = said.error, True
                return
            if isinstance(said, wire.Told):
                self._name(said)
                continue
            if isinstance(said, wire.Visited) and len(self.result.reports) >= MOST:
                raise CleanUpFailed("the clean-up is not understood: it begins anew")
            try:
                answer: wire.Heard = await self._answer(said)
            except ForgeError as error:
                answer = wire.Declined(str(error))
            await child.tell(wire.encode(answer))

    def _name(self, told: wire.Told) -> None:
        result = self.result
        result.removals += told.removals[: MAX_NAMED - len(result.removals)]
        result.skips += told.skips[: MAX_NAMED - len(result.skips)]

    async def _answer(self, said: wire.Question) -> wire.Answer:
        books = self._books
        match said:
            case wire.Visiting(clean_class):
                self.visits = clean_class
                return wire.Answer(cursor=await books.visiting(clean_class))
            case wire.Visited(report):
                self.visits = None
                self.result.reports.append(report)
                await books.visited(report)
                return wire.Answer()
            case wire.ForgetJobs(jobs):
                return wire.Answer(jobs=await books.forget_jobs(jobs))
            case wire.ForgetEvents(before):
                return wire.Answer(count=await books.forget_events(before))
            case wire.Record(worktree, step):
                await books.record(worktree, step)
                return wire.Answer()
            case wire.Upkeep():
                return wire.Answer(count=await books.upkeep())


def _why(talk: _Talk, child: _Child, limit: trio.CancelScope) -> str:
    """Why a run did not come to its end, in a sentence."""
    if talk.failure is not None:
        return talk.failure
    where = "" if talk.visits is None else f" in the class {talk.visits}"
    if limit.cancelled_caught:
        return f"the clean-up took too long and was ended{where}"
    status = child.process.returncode
    if status < 0:
        how = f"was ended by {signal.Signals(-status).name}"
    else:
        how = f"ended too early with status {status}"
    lines = child.complaint.decode("utf-8", "replace").strip().splitlines()
    said = f": {bounded(lines[-1], SHOWN)}" if lines else ""
    return f"the clean-up {how}{where}{said}"


def _environment(mark: str) -> dict[str, str]:
    """A clean one: enough to find programs, and the same modules as this process."""
    known = {name: os.environ[name] for name in KEPT if name in os.environ}
    known |= {n: value for n, value in os.environ.items() if n.startswith("LC_")}
    path = os.pathsep.join(place for place in sys.path if place)
    return {**known, "PYTHONPATH": path, WORKER: "1", MARK: mark}


def _put_last_in_line(pid: int) -> None:
    """Let everybody else have the processor and the disk first, as far as one may."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, NICE)
    # Where each session has a share of its own, that has a place in line too.
    with suppress(OSError), open(f"/proc/{pid}/autogroup", "w", encoding="ascii") as f:
        f.write(str(NICE))
    with suppress(psutil.Error, OSError, AttributeError):
        psutil.Process(pid).ionice(psutil.IOPRIO_CLASS_IDLE)


def _limit(pid: int, limits: CleanLimits) -> None:
    if not hasattr(resource, "prlimit"):
        return
    cpu = limits.cpu_seconds
    wanted = (
        (resource.RLIMIT_DATA, (limits.memory_bytes, limits.memory_bytes)),
        (resource.RLIMIT_CPU, (cpu, cpu + 5)),
        (resource.RLIMIT_CORE, (0, 0)),
    )
    for kind, values in wanted:
        # It may have ended already, or have lower limits than it is to have.
        with suppress(OSError, ValueError):
            resource.prlimit(pid, kind, values)
