"""Suspending the tree of a job, and how long it has been suspended."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from forge_actors.edges.node.agent import tree
from forge_actors.edges.node.agent.loop import NEVER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from forge_actors.edges.node.agent.tree import Process

#: Seconds to the next look at a tree that is to stand still, doubled up to the last:
#: often enough to catch one that forks all the time.
FIRST_PAUSE, LAST_PAUSE = 0.005, 0.02
#: Looks in a row that find nothing running before it is taken to stand still.
_CALM_LOOKS = 2


class Suspension:
    """The pauses of one job. Times are monotonic seconds."""

    __slots__ = ("_calm", "_pause", "since", "total")

    def __init__(self) -> None:
        #: When the present pause began; None while the job runs.
        self.since: float | None = None
        #: Seconds of all pauses that are over.
        self.total = 0.0
        self._calm = 0
        self._pause = FIRST_PAUSE

    def begin(self, now: float) -> None:
        self.since = now
        self._calm = 0
        self._pause = FIRST_PAUSE

    def end(self, now: float) -> None:
        if self.since is not None:
            self.total += now - self.since
            self.since = None

    def halt(
        self,
        members: Iterable[Process],
        send: Callable[[Process, int], bool],
        now: float,
    ) -> float:
        """Stop what runs; the time of the next look, NEVER when the tree stands still.

        A process may start another one before the signal reaches it, and one look can
        miss that one. Once its parent is stopped it cannot be missed any more, and it
        shows as running: so the second look after all were stopped is the proof.
        """
        running = [process for process in members if not process.stopped]
        # What is gone or may not be stopped by this user is not waited for.
        running = [process for process in running if send(process, signal.SIGSTOP)]
        # The kernel holds it, for a vfork or a disk: the signal acts when it returns.
        waits = tree.HAS_PROC and any(not process.held for process in running)
        self._calm = 0 if waits else self._calm + 1
        if self._calm >= _CALM_LOOKS or not tree.HAS_PROC:
            return NEVER
        due = now + self._pause
        self._pause = min(self._pause * 2, LAST_PAUSE)
        return due
