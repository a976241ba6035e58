"""One job attempt: from its start to the proof that nothing of it is left.

The phases, in order; each may be skipped:

    RUNNING    the leader, the process we started, runs
    LINGERING  the leader ended by itself, something it started is still there
    STOPPING   everything got the stop signal, the grace runs
    KILLING    everything is killed, again and again until nothing is found
"""

from __future__ import annotations

import os
import signal
from time import time
from typing import TYPE_CHECKING

from forge_actors.edges.node.agent import tree
from forge_actors.edges.node.agent.loop import NEVER
from forge_actors.edges.node.agent.masking import Masking
from forge_actors.edges.node.agent.output import Stream
from forge_actors.edges.node.agent.suspension import Suspension

if TYPE_CHECKING:
    from collections.abc import Callable
    from resource import struct_rusage

    from forge_actors.edges.node.agent.child import Child
    from forge_actors.edges.node.agent.order import Order
    from forge_actors.edges.node.agent.tree import Process

    Members = Callable[["Job"], list[Process]]

#: Seconds that what a job left behind may still take to end by itself.
LINGER = 2.0
#: The same where it may stay: only long enough for output that is on its way.
KEEP_DRAIN = 0.1
#: Seconds between the signal to leftovers and the kill.
LEFTOVER_GRACE = 2.0
#: Seconds that what is killed may take to go. Only what the kernel holds takes longer.
KILL_LIMIT = 8.0
#: Stop signals that a lasting job gets.
MOST_STOPS = 2
#: Seconds to the first look at a tree that should be going, doubled up to the last.
FIRST_PAUSE, LAST_PAUSE = 0.005, 0.25

RUNNING, LINGERING, STOPPING, KILLING = range(4)


class Job:
    """An attempt whose leader was started. Times are monotonic unless called wall.

    The command that runs after a job is one more, with the job as `previous`.
    """

    # What most jobs never change they find here.
    status: int | None = None
    usage: struct_rusage | None = None
    phase = RUNNING
    ending = "exit"
    #: The number of the group and session may belong to a stranger by now.
    group_gone = False
    output_held = False
    #: SIGKILL was needed.
    forced = False
    _grouped = False
    _told = False
    _pause = FIRST_PAUSE
    _until = NEVER
    #: A lasting one: how many of its stop signals it got, and that it was left to
    #: itself, since nobody is there any more to wait for its end.
    _stops = 0
    left_alone = False
    #: Only of a job that was ever paused.
    _suspension: Suspension | None = None

    def __init__(
        self,
        order: Order,
        child: Child,
        start: int,
        now: float,
        previous: Job | None = None,
    ) -> None:
        self.order = order
        self.key = order.key
        self.pid, stdout, stderr, self._terminal = child
        self.previous = previous
        self.start = start
        self.began = now
        self.last_output = now
        self.started_at = time()
        if previous is None:
            limit = order.output_limit
            self.streams = (
                # Of a terminal it is all there is.
                Stream(stdout, order.log + b".stdout", limit, keep_tail=order.pty),
                Stream(stderr, order.log + b".stderr", limit, keep_tail=not order.pty),
            )
            if self._terminal is not None:
                self.streams[0].read = self._terminal.read
            if order.masked:
                for stream in self.streams:
                    stream.masking = Masking(order.masked)
        else:
            self.streams = previous.streams
            self.streams[0].go_on(stdout)
            self.streams[1].go_on(stderr)
        self.leftovers: list[Process] = []
        #: Counts of bytes that somebody waits to see passed.
        self.watched: list[int] = []
        self.problems: list[str] = []
        #: What could not be ended, by pid and start.
        self.spared: dict[tuple[int, int], Process] = {}
        self.due = self._budget()

    def _wall(self) -> float:
        """When its execution budget is spent."""
        if self.order.wall is None:
            return NEVER
        return self.began + self.paused_seconds + self.order.wall

    def _budget(self) -> float:
        wall, idle = self._wall(), self.order.idle
        return wall if idle is None else min(wall, self.last_output + idle)

    @property
    def paused(self) -> bool:
        return self._suspension is not None and self._suspension.since is not None

    @property
    def paused_seconds(self) -> float:
        """Of all pauses that are over."""
        return 0.0 if self._suspension is None else self._suspension.total

    @property
    def output_kept(self) -> int:
        """Bytes that a reader of the log can have passed."""
        return self.streams[0].kept + self.streams[1].kept

    def pause(self, now: float) -> None:
        """Suspend the group now and the rest of the tree from the next `advance` on.

        A job that is paused or about to end stays as it is.
        """
        if self.phase != RUNNING or self.paused or self.order.lasting:
            return
        if self._suspension is None:
            self._suspension = Suspension()
        self._suspension.begin(now)
        self._signal_group(signal.SIGSTOP)
        self.due = now

    def resume(self, now: float, members: Members) -> None:
        """Let a paused tree go on, with the budgets it had left."""
        if self.paused:
            # Looked at before the first one runs again, the tree is complete.
            self._continue(now, members(self))
            self.due = self._budget()

    def _continue(self, now: float, members: list[Process]) -> None:
        self._signal_group(signal.SIGCONT)
        for process in members:
            if process.group != self.pid or self.status is not None:
                self._send(process, signal.SIGCONT)
        self._end_pause(now)

    def _end_pause(self, now: float) -> None:
        suspension = self._suspension
        if suspension is not None and suspension.since is not None:
            self.last_output = now - max(0.0, suspension.since - self.last_output)
            suspension.end(now)

    def stop(self, now: float, grace: float, ending: str) -> None:
        """Signal the group now and the rest of the tree at the next `advance`.

        In this order: reading the tree first and then signalling misses a child that
        calls setsid in between, since it was seen in the group and has left it. That
        one would run on until the kill. A later call can only shorten the grace.

        A lasting job is asked, and runs on until it ends by itself.
        """
        if self.order.lasting and self.phase == RUNNING:
            self._ask(now, grace, ending)
            return
        if self.phase == RUNNING:
            self.ending = ending
            self._end_pause(now)
        if self.phase < STOPPING:
            self._grouped = self._signal_group(self.order.stop_signal)
            self._signal_group(signal.SIGCONT)
            self.phase = STOPPING
            self._until = now + grace
            self._pause = FIRST_PAUSE
            self.due = now
        elif self.phase == STOPPING:
            self._until = min(self._until, now + grace)
            self.due = min(self.due, self._until)

    def _ask(self, now: float, grace: float, ending: str) -> None:
        """Send a lasting job its stop signal, twice at most, to nobody but its leader:
        that ends by itself what it has started."""
        if self._stops < MOST_STOPS:
            self._stops += 1
            # Its pid is its own, since it is not reaped.
            os.kill(self.pid, self.order.stop_signal)
        if self.ending == "exit" or ending == "cancel":
            self.ending = ending
        if ending == "owner":
            self._until = self.due = now + grace

    def leader_ended(self, now: float, status: int, usage: struct_rusage) -> None:
        self.status = status
        self.usage = usage
        self.left_alone = False
        if self._terminal is not None:
            self._terminal.release()
        if self.phase == RUNNING:
            self.phase = LINGERING
            self._until = now + (KEEP_DRAIN if self.order.keep_leftovers else LINGER)
        self.due = min(self._until, now + self._pause)

    def advance(self, now: float, members: Members) -> bool:
        """Do what is due. True once nothing of the job is left."""
        if self.phase == RUNNING:
            self._advance_running(now, members)
            return False
        alive = self._without_spared(members(self))
        if self.paused:
            # Its leader was killed meanwhile: what is left must be able to end.
            self._continue(now, alive)
        if not alive and (self.status is not None or self._is_spared(self)):
            return True
        if self.phase == STOPPING and not self._told:
            self._told = True
            self._tell(alive)
            if self.ending == "exit":
                self.leftovers = self.leftovers or alive
        if now >= self._until:
            if self.phase == LINGERING:
                self.leftovers = alive
                self.output_held = self.drain()
                if self.order.keep_leftovers:
                    return True
                self.stop(now, LEFTOVER_GRACE, self.ending)
                return False
            if self.phase == KILLING:
                for process in alive:
                    self._spare(process, "does not end: the kernel holds it")
                return True
            self.phase = KILLING
            self._until = now + KILL_LIMIT
        if self.phase == KILLING:
            self._kill(alive)
        self.due = min(now + self._pause, self._until)
        self._pause = min(self._pause * 2, LAST_PAUSE)
        return False

    def _advance_running(self, now: float, members: Members) -> None:
        if self.order.lasting:
            self.left_alone = now >= self._until
            self.due = NEVER if self.left_alone else self._until
        elif self._suspension is not None and self.paused:
            self.due = self._suspension.halt(members(self), self._send, now)
        elif now >= self._budget():
            ending = "wall" if now >= self._wall() else "idle"
            self.stop(now, self.order.grace, ending)
        else:
            self.due = self._budget()

    def drain(self) -> bool:
        """Take what is in the pipes. True if somebody could still write."""
        held = False
        for stream in self.streams:
            if stream.fd >= 0:
                held = stream.drain() or held
        return held

    def _without_spared(self, members: list[Process]) -> list[Process]:
        if not self.spared:
            return members
        return [member for member in members if not self._is_spared(member)]

    def _is_spared(self, process: Process | Job) -> bool:
        return (process.pid, process.start) in self.spared

    def _tell(self, members: list[Process]) -> None:
        """Send the stop signal to those outside of the group, and wake the stopped.

        Once, because many tools take a second interrupt for "now, without clean-up";
        and only to those there now, because what a member starts from here on is its
        clean-up. A daemon that forks at this very moment is found by the kill.
        """
        for process in members:
            if not (self._grouped and process.group == self.pid):
                self._send(process, self.order.stop_signal)
                self._send(process, signal.SIGCONT)

    def _kill(self, members: list[Process]) -> None:
        if self._signal_group(signal.SIGKILL):
            self.forced = True
        cgroup = self.order.cgroup
        if cgroup is not None and cgroup.populated() and cgroup.kill():
            self.forced = True
        for process in members:
            if self._send(process, signal.SIGKILL):
                self.forced = True

    def _signal_group(self, number: int) -> bool:
        """All of the group in one call, so that no member can fork past it.

        Its number is surely its own only while the leader is not reaped.
        """
        if self.status is not None:
            return False
        try:
            os.killpg(self.pid, number)
        except OSError:
            return False
        return True

    def _send(self, process: Process, number: int) -> bool:
        """Whether it got the signal. One that may not be killed is not waited for."""
        try:
            return tree.send(process, number)
        except PermissionError:
            cgroup = self.order.cgroup
            contained = cgroup is not None and process.pid in cgroup.pids()
            if number == signal.SIGKILL and not contained:
                self._spare(process, "may not be ended by this user")
            return False

    def _spare(self, process: Process, why: str) -> None:
        """It is named in the receipt: what it holds must not be given to others."""
        self.spared[process.pid, process.start] = process
        self.problems.append(f"process {process.pid} {process.name} {why}")
