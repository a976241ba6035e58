"""The node agent: parent of every job process of a home.

What is to be done the `Desk` decides; here it is done. An agent that is bound to its
service ends everything when the service closes the socket, or dies; the receipts are
written, and the agent goes too. Any other goes on, and listens for the next service.
"""

from __future__ import annotations

import os
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from forge_actors.edges.node.agent import following, handed, tree
from forge_actors.edges.node.agent.child import SpawnFailed
from forge_actors.edges.node.agent.desk import Desk, Unwelcome
from forge_actors.edges.node.agent.jobs import LINGERING, RUNNING, Job
from forge_actors.edges.node.agent.kin import Kept, Kin, surely_gone
from forge_actors.edges.node.agent.lines import message_of
from forge_actors.edges.node.agent.listener import Listener
from forge_actors.edges.node.agent.loop import NEVER, Channel, Loop, Signals
from forge_actors.edges.node.agent.order import Order, allow_files, environment
from forge_actors.edges.node.agent.pump import attend, can_wait
from forge_actors.edges.node.agent.receipt import (
    identity_of,
    receipt_of,
    unfinished_of,
)
from forge_actors.edges.node.agent.records import output_line, refused
from forge_actors.edges.node.agent.spawn import Spawner
from forge_actors.edges.node.agent.starts import Starts
from forge_actors.edges.node.agent.telling import Telling

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


class Node:
    """The running jobs, and the only one who changes them: the hands of the desk."""

    def __init__(
        self,
        sock: socket.socket,
        journal: Journal,
        about: dict[str, Any],
        listen: tuple[str, str] | None,
    ) -> None:
        """Serve whoever says hello at `sock`.

        `about` is the agent's name and the identity of its process. With `listen`, a
        home and the path of a socket, others can come after the first service.

        Raises:
            OSError: it cannot listen there.
        """
        self._loop = Loop()
        self._signals = Signals(self._loop)
        self._channel = Channel(self._loop, sock, _unheard)
        # The one at the other end has started us.
        self._channel.on_line = partial(self._on_hello, self._channel, trusted=True)
        self._desk: Desk[Job] = Desk(self, journal, about)
        self._boot_id: str = about["boot_id"]
        self._namespace: int = about["namespace"]
        #: What every job has in its environment.
        self._base: dict[bytes, bytes] = {}
        #: The table of the desk.
        self._jobs = self._desk.jobs
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
        self._telling = Telling(self._desk.behind)
        self._starts = Starts()
        self._listener: Listener | None = None
        if listen is not None:
            hello = partial(self._on_hello, trusted=False)
            self._listener = Listener(self._loop, *listen, about, hello)
        # Last, since it may leave a folder behind; and before anybody is served.
        self._spawner = Spawner(about["instance"])

    def run(self) -> None:
        """Serve until the service is gone, and nothing is left of its jobs but those
        that last and did not end when they were asked to."""
        listener = self._listener
        while not self._desk.leaving or not self._is_over:
            due = min(self._due, self._starts.due, self._telling.due)
            self._loop.turn(due if listener is None else min(due, listener.due))
            if self._signals.children:
                self._reap()
            if self._channel.ended and not self._desk.alone:
                self._service_gone()
            if self._signals.stop and not self._desk.ending:
                self._desk.end()
            now = monotonic()
            if now >= self._due:
                self._advance_due(now)
            if now >= self._starts.due:
                self._tell_starts(now)
            if listener is not None and (why := listener.turn(now, self._signals)):
                self._desk.tell_problem(None, f"the node agent cannot listen: {why}")
            if self._telling.is_time(now):
                self._channel.flush()
            self._kin = None
        if listener is not None:
            listener.close()
        self._spawner.close()
        for job in self._jobs:
            self._desk.tell_problem(job[0], "it runs on, and nobody waits for its end")
        self._channel.flush()
        limit = monotonic() + _LAST_WORDS
        while self._channel.unsent and monotonic() < limit:
            self._loop.turn(limit)

    @property
    def _is_over(self) -> bool:
        return all(job.left_alone for job in self._jobs.values())

    # What the service says.

    def _on_hello(self, channel: Channel, line: bytes, *, trusted: bool) -> None:
        try:
            hello = message_of(line)
            listener = self._listener
            if not trusted and not (listener and listener.knows(hello.get("secret"))):
                raise Unwelcome("secret", "the secret is not that of this agent")
            base = environment(hello["env"])
            if listener is not None:
                # First: who is served may count on being found again.
                listener.announce(str(hello["release"]))
            news = self._desk.greet(hello)
        except Unwelcome as error:
            channel.close_with(refused(error.code, str(error)))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is no hello
            channel.close_with(refused("hello", f"{type(error).__name__}: {error}"))
        else:
            self._base = base
            allow_files(hello.get("files"))
            self._serve(channel)
            for each in news:
                self.say(each)

    def _serve(self, channel: Channel) -> None:
        old, self._channel = self._channel, channel
        channel.on_line = self._on_line
        channel.take_descriptors()
        if old is channel:
            return
        if not old.ended:
            old.close_with(refused("replaced", "another runtime has taken over"))
        # They are numbers of questions that nobody here has asked.
        for job in self._jobs.values():
            job.watched.clear()
        if self._listener is not None:
            self._listener.keep_spare()

    def _service_gone(self) -> None:
        self._desk.service_gone()
        if not self._desk.ending:
            self._channel.close()

    def _on_line(self, line: bytes) -> None:
        job = None
        try:
            message = message_of(line)
            job = message.get("job")
            if "descriptors" in message and self._channel.handed is not None:
                handed.obey(self._desk, message, self._channel.handed)
            else:
                self._desk.obey(message)
        except Exception as error:  # noqa: BLE001 - one bad message must not end all jobs
            self._desk.tell_problem(job, f"{type(error).__name__}: {error}")

    # What the desk asks for.

    def begin(self, key: Mark, message: dict[str, Any]) -> Job:
        order = Order(message, self._base)
        before = tree.boot_ns()
        try:
            child = self._spawner.spawn(order)
        except SpawnFailed:
            raise
        except Exception as error:  # there is no child, so it must have a receipt
            raise SpawnFailed(f"{type(error).__name__}: {error}") from error
        start = tree.start_between(child[0], before, tree.boot_ns())
        job = Job(order, child, start, monotonic())
        self._add(job)
        self._starts.add(job, job.began)
        return job

    def repeat_start(self, job: Job) -> None:
        self._starts.add(job.previous or job, monotonic())

    def _add(self, job: Job) -> None:
        self._leaders[job.pid] = job
        self._kin = None
        if not can_wait(job):
            attend(self, self._loop, job)
        self._due = min(self._due, job.due)

    def stop(self, job: Job, grace: float | None, ending: str) -> None:
        job.stop(monotonic(), job.order.grace if grace is None else grace, ending)
        self._due = min(self._due, job.due)
        self._kin = None  # who is in its group is to be seen after the signal

    def end(self, job: Job) -> None:
        self.stop(job, min(job.order.grace, OWNER_GRACE), "owner")

    def suspend(self, job: Job, *, pause: bool) -> None:
        self._kin = None  # what was seen before may have forked
        if pause:
            job.pause(monotonic())
        else:
            job.resume(monotonic(), self._members)
        self._due = min(self._due, job.due)

    def watch(self, job: Job, known: int) -> None:
        if job.output_kept > known:
            self.say(output_line(job.key, known))
        else:
            job.watched.append(known)

    def identity(self, job: Job) -> dict[str, Any]:
        leader = job.previous or job
        return identity_of(leader.pid, leader.start, self._boot_id, self._namespace)

    def say(self, line: bytes) -> None:
        self._telling.add()
        self._channel.send(line)

    def now(self) -> float:
        return time()

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
        leaders, newest = self._leaders, tree.last_pid()
        for job, status, usage in ended:
            job.leader_ended(now, status, usage)
            quick = job.phase == LINGERING and surely_gone(job, leaders, newest, now)
            if quick or job.advance(now, self._members):
                self._finish(job)
            else:
                self._due = min(self._due, job.due)
                self._note_result(job)
        if orphans:
            for job in self._jobs.values():
                if job.phase != RUNNING:
                    job.due = self._due = now

    def _note_result(self, job: Job) -> None:
        """Its leader has ended: what it came to must not be lost if we are lost now."""
        if job.previous is None:
            result = unfinished_of(job, self._boot_id, self._namespace)
            self._desk.came_to(job.key, result)

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
            if job.watched:
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
            self._kept.keep(job, job.leftovers)
        if job.spared:
            self._kept.keep(job, job.spared.values())
        if job.status is None:  # its leader could not be ended
            self._leaders.pop(job.pid, None)
        receipt = receipt_of(job, self._boot_id, self._namespace)
        if job.order.cgroup is not None:
            job.order.cgroup.remove()
        if job.previous is not None:
            result = self._results.pop(job.key)
            receipt = following.receipt_with(result, job.order, receipt)
        if job.order.steps and self._start_step(job, receipt):
            return
        for stream in job.streams:
            stream.close()
        self._starts.drop(job.key)
        self._desk.ended(job.key, receipt)
        if job.watched:
            self._answer_watchers(job, None)

    def _start_step(self, last: Job, receipt: dict[str, Any]) -> bool:
        """Start the next of what follows a job; False if nothing more does."""
        job = last.previous or last
        for step in last.order.steps:
            gone = self._desk.ending
            order = following.order_for(step, job, receipt, owner_gone=gone)
            try:
                before = tree.boot_ns()
                child = self._spawner.spawn(order)
            except SpawnFailed as error:
                receipt[step] = {"error": str(error)}
                continue
            # What the job came to must not be lost if we are lost with the step.
            self._desk.came_to(job.key, following.unfinished(receipt, order))
            self._results[job.key] = receipt
            start = tree.start_between(child[0], before, tree.boot_ns())
            after = Job(order, child, start, monotonic(), previous=job)
            after.watched = last.watched
            self._jobs[job.key] = after
            self._add(after)
            return True
        return False

    def _answer_watchers(self, job: Job, total: int | None) -> None:
        """Answer those whose count is passed; all of them at the end (None)."""
        waiting = []
        for known in job.watched:
            if total is None or total > known:
                self.say(output_line(job.key, known))
            else:
                waiting.append(known)
        job.watched = waiting

    def _tell_starts(self, now: float) -> None:
        for job in self._starts.take(now):
            self._desk.started(job.key)
            attend(self, self._loop, self._jobs[job.key])


def _unheard(_line: bytes) -> None:
    raise AssertionError("replaced before anything is read")
