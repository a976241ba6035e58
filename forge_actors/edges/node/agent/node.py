"""The node agent: parent of every job process of one service.

It is bound to its service: when the service closes the socket, or dies, everything is
ended, the receipts are written, and the agent goes too.
"""

from __future__ import annotations

import json
import os
from time import monotonic
from typing import TYPE_CHECKING, Any

from forge_actors.edges.node.agent import after_job, tree
from forge_actors.edges.node.agent.child import NoRoom, SpawnFailed
from forge_actors.edges.node.agent.held_starts import HeldStarts, never_ran
from forge_actors.edges.node.agent.jobs import LINGERING, RUNNING, Job
from forge_actors.edges.node.agent.kin import Kept, Kin, surely_gone
from forge_actors.edges.node.agent.loop import NEVER, READ, Channel, Loop, Signals
from forge_actors.edges.node.agent.order import Malformed, Order, environment
from forge_actors.edges.node.agent.spawn import Spawner
from forge_actors.edges.node.agent.starts import Starts

if TYPE_CHECKING:
    import socket
    from resource import struct_rusage

    from forge_actors.edges.node.agent.journal import Journal
    from forge_actors.edges.node.agent.output import Stream
    from forge_actors.edges.node.agent.tree import Mark, Process

#: Longest grace, in seconds, once the service is gone: nobody is left to be patient.
OWNER_GRACE = 5.0
#: Seconds for the last messages to be read by a service that closed its end.
_LAST_WORDS = 2.0

_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().decode


def _line(message: dict[str, Any]) -> bytes:
    return _encode(message).encode()


class Node:
    """The table of running jobs, and the only one who changes it."""

    def __init__(
        self, sock: socket.socket, journal: Journal, boot_id: str, instance: str
    ) -> None:
        self._loop = Loop()
        self._signals = Signals(self._loop)
        self._channel = Channel(self._loop, sock, self._on_line)
        self._journal = journal
        self._boot_id = boot_id
        self._instance = instance
        self._namespace = tree.pid_namespace()
        self._spawner = Spawner(instance)
        #: What every job has in its environment.
        self._base: dict[bytes, bytes] = {}
        self._jobs: dict[Mark, Job] = {}
        self._held = HeldStarts()
        #: The receipts of jobs whose last command still runs.
        self._results: dict[Mark, dict[str, Any]] = {}
        #: Leaders that are not reaped, by pid.
        self._leaders: dict[int, Job] = {}
        #: The processes as they were in this turn, for all who ask in it; dropped when
        #: it ends, and before that when something we know of has changed.
        self._kin: Kin | None = None
        self._kept = Kept()
        #: No job is due before this; looking at all of them each turn would cost more.
        self._due = NEVER
        self._ending = False
        #: Something is to be told at the end of this turn.
        self._news = False
        self._starts = Starts()

    def run(self) -> None:
        """Serve until the service is gone and nothing is left of its jobs."""
        place = {"boot_id": self._boot_id, "namespace": self._namespace}
        self._send({"event": "ready", "instance": self._instance, **place})
        self._channel.flush()
        while self._jobs or not self._ending:
            self._loop.turn(min(self._due, self._starts.due))
            if self._signals.children:
                self._reap()
            if not self._ending and (self._channel.ended or self._signals.stop):
                self._owner_gone()
            now = monotonic()
            if now >= self._due:
                self._advance_due(now)
            if now >= self._starts.due:
                self._tell_starts(now)
            if self._news:
                self._channel.flush()
                self._news = False
            self._kin = None
        limit = monotonic() + _LAST_WORDS
        while self._channel.unsent and monotonic() < limit:
            self._loop.turn(limit)

    # What the service says.

    def _on_line(self, line: bytes) -> None:
        job = None
        try:
            message: dict[str, Any] = _decode(line.decode())
            job = message.get("job")
            self._obey(message)
        except Exception as error:  # noqa: BLE001 - one bad message must not end all jobs
            self._tell_problem(job, f"{type(error).__name__}: {error}")

    def _obey(self, message: dict[str, Any]) -> None:
        operation = message["op"]
        if operation == "forget":
            for job_id, attempt in message["attempts"]:
                self._journal.forget((job_id, attempt))
            return
        if operation == "base":
            self._base = environment(message["env"])
            return
        key: Mark = (message["job"], message["attempt"])
        if operation == "start":
            self._start(key, message)
        elif operation == "stop":
            job = self._jobs.get(key)
            if job is None:
                self._stop_held(key)
            else:
                grace = message["grace"]
                grace = job.order.grace if grace is None else float(grace)
                self._stop(job, grace, message["ending"])
        elif operation in ("pause", "resume"):
            job = self._jobs.get(key)
            if job is None:
                self._held.suspend(key, pause=operation == "pause")
            else:
                self._suspend(job, pause=operation == "pause")
        elif operation == "watch":
            job = self._jobs.get(key)
            known = int(message["known"])
            if job is None or job.output_kept > known:
                self._send_output(key, known)
            else:
                job.watched.append(known)
        else:
            raise Malformed(f"unknown op {operation!r}")

    def _start(self, key: Mark, message: dict[str, Any]) -> None:
        """Start an attempt, or repeat what became of it: it never runs twice."""
        job = self._jobs.get(key)
        if job is not None:
            self._starts.add(job.previous or job, monotonic())
            return
        written = self._journal.find(key)
        if written is not None:
            self._send_exited(written)
            return
        if key in self._held:
            return
        try:
            if self._ending:
                raise SpawnFailed("the node agent is stopping")
            order = Order(message, self._base)
            before = tree.boot_ns()
            child = self._spawner.spawn(order)
        except (Malformed, SpawnFailed) as error:
            if isinstance(error, NoRoom) and self._jobs:
                self._held.hold(key, message)
                self._tell_problem(key[0], f"it starts later: {error}")
            else:
                self._publish(key, never_ran(key, message, "spawn", str(error)))
            return
        start = tree.start_between(child[0], before, tree.boot_ns())
        job = Job(order, child, start, monotonic())
        self._add(job)
        self._starts.add(job, job.began)
        if message.get("paused"):
            self._suspend(job, pause=True)

    def _start_held(self) -> None:
        """Try again what the system had no room for: a job has given some back."""
        for key, message in self._held.take().items():
            self._start(key, message)

    def _stop_held(self, key: Mark) -> None:
        receipt = self._held.stop(key)
        if receipt is not None:
            self._publish(key, receipt)

    def _add(self, job: Job) -> None:
        self._jobs[job.key] = job
        self._leaders[job.pid] = job
        self._kin = None
        for stream in job.streams:
            if stream.fd >= 0:
                self._loop.register(stream.fd, READ, _Pump(self, job, stream))
        self._due = min(self._due, job.due)

    def _stop(self, job: Job, grace: float, ending: str) -> None:
        job.stop(monotonic(), grace, ending)
        self._due = min(self._due, job.due)
        self._kin = None  # who is in its group is to be seen after the signal

    def _suspend(self, job: Job, *, pause: bool) -> None:
        self._kin = None  # what was seen before may have forked
        if pause:
            job.pause(monotonic())
        else:
            job.resume(monotonic(), self._members)
        self._due = min(self._due, job.due)

    def _owner_gone(self) -> None:
        self._ending = True
        for key in self._held:
            self._stop_held(key)
        for job in self._jobs.values():
            self._stop(job, min(job.order.grace, OWNER_GRACE), "owner")

    # What the jobs do.

    def _reap(self) -> None:
        """Collect every child that ended, orphans we inherited as well."""
        # Reset before, not after: a child that ends while we collect sets it again.
        self._signals.children = False
        ended: list[tuple[Job, int, struct_rusage]] = []
        orphans = False
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            job = self._leaders.pop(pid, None)
            if job is None:
                orphans = True
            else:
                ended.append((job, status, usage))
        # Only when all are collected, so that one picture of the processes does for
        # all of them: an earlier one would show what is gone by now.
        self._kin = None
        now = monotonic()
        for job, status, usage in ended:
            job.leader_ended(now, status, usage)
            quick = job.phase == LINGERING and surely_gone(job, self._leaders, now)
            if quick or job.advance(now, self._members):
                self._finish(job)
            else:
                self._due = min(self._due, job.due)
        if orphans:
            for job in self._jobs.values():
                if job.phase != RUNNING:
                    job.due = self._due = now

    def _advance_due(self, now: float) -> None:
        for job in list(self._jobs.values()):
            if job.due <= now and job.advance(now, self._members):
                self._finish(job)
        self._due = min((job.due for job in self._jobs.values()), default=NEVER)

    def _members(self, job: Job) -> list[Process]:
        if self._kin is None:
            self._kin = Kin(self._jobs.values(), self._leaders, self._kept)
        return self._kin.members(job)

    def pumped(self, job: Job, stream: Stream) -> None:
        """Its pipe has something, or its end."""
        try:
            more = stream.pump()
        except BlockingIOError:
            return
        if more:
            job.last_output = monotonic()
            self._answer_watchers(job, job.output_kept)
        else:
            self._close_pipe(stream)

    def _close_pipe(self, stream: Stream) -> None:
        # Unregister first: a descriptor number is used again at once.
        self._loop.unregister(stream.fd)
        os.close(stream.fd)
        stream.fd = -1
        stream.flush()

    def _finish(self, job: Job) -> None:
        """Nothing of the job is left, or what is left may stay."""
        # The pipes are empty of writers now, but not of what was written last. One
        # that is still open is held by a process outside of the job.
        if job.drain():
            job.output_held = True
        for stream in job.streams:
            if stream.fd >= 0:
                self._close_pipe(stream)
        if job.leftovers and job.order.keep_leftovers:
            self._kept.keep(job)
        receipt = job.receipt(self._boot_id, self._namespace)
        if job.order.cgroup is not None:
            job.order.cgroup.remove()
        if job.previous is not None:
            receipt = after_job.receipt_with(self._results.pop(job.key), receipt)
        elif job.order.after_job is not None:
            problem = self._start_after(job, receipt)
            if problem is None:
                return
            receipt["after_job"] = {"error": problem}
        del self._jobs[job.key]
        for stream in job.streams:
            stream.close()
        self._publish(job.key, receipt)
        self._answer_watchers(job, None)
        if self._held:
            self._start_held()

    def _start_after(self, job: Job, receipt: dict[str, Any]) -> str | None:
        """Start the command that follows a job, or say why it cannot be."""
        order = after_job.order_for(job, receipt, owner_gone=self._ending)
        try:
            before = tree.boot_ns()
            child = self._spawner.spawn(order)
        except SpawnFailed as error:
            return str(error)
        # What the job came to must not be lost if we are lost with the command.
        self._write_down(job.key, _line(receipt | {"after_job": after_job.UNFINISHED}))
        self._results[job.key] = receipt
        start = tree.start_between(child[0], before, tree.boot_ns())
        after = Job(order, child, start, monotonic(), previous=job)
        after.watched = job.watched
        self._add(after)
        return None

    # What the service is told.

    def _publish(self, key: Mark, receipt: dict[str, Any]) -> None:
        line = _line(receipt)
        self._write_down(key, line)
        self._starts.drop(key)
        self._send_exited(line)

    def _write_down(self, key: Mark, line: bytes) -> None:
        try:
            self._journal.append(key, line)
        except OSError as error:
            # The service is still told, and saves it in its own place.
            problem = f"the receipt could not be written: {error.strerror}"
            self._tell_problem(key[0], problem)

    def _answer_watchers(self, job: Job, total: int | None) -> None:
        """Answer those whose count is passed; all of them at the end (None)."""
        if not job.watched:
            return
        waiting = []
        for known in job.watched:
            if total is None or total > known:
                self._send_output(job.key, known)
            else:
                waiting.append(known)
        job.watched = waiting

    def _tell_starts(self, now: float) -> None:
        for job in self._starts.take(now):
            self._send(
                {
                    "event": "started",
                    "job": job.key[0],
                    "attempt": job.key[1],
                    "pid": job.pid,
                    "start_ticks": job.start,
                }
            )

    def _send_exited(self, receipt: bytes) -> None:
        self._news = True
        self._channel.send(b'{"event":"exited","receipt":' + receipt + b"}")

    def _send_output(self, key: Mark, known: int) -> None:
        self._send(
            {"event": "output", "job": key[0], "attempt": key[1], "known": known}
        )

    def _send(self, message: dict[str, Any]) -> None:
        self._news = True
        self._channel.send(_line(message))

    def _tell_problem(self, job: str | None, problem: str) -> None:
        self._send({"event": "error", "job": job, "problem": problem})


class _Pump:
    """What the loop calls for one stream; lighter than a partial and its tuple."""

    __slots__ = ("_job", "_node", "_stream")

    def __init__(self, node: Node, job: Job, stream: Stream) -> None:
        self._node = node
        self._job = job
        self._stream = stream

    def __call__(self) -> None:
        self._node.pumped(self._job, self._stream)
