"""Starts that the service is not told of yet.

A short job's end comes right after its start and says all of it. So a start is told a
moment later, unless the job has ended by then: that is one message less to write and to
read for each short job, and the service wakes once for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.edges.node.agent.loop import NEVER

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.jobs import Job
    from forge_actors.edges.node.agent.tree import Mark

#: Longest time, in seconds, that a start waits for the job's end.
STARTED_DELAY = 0.005


class Starts:
    """Jobs in the order in which they started."""

    def __init__(self) -> None:
        self._waiting: dict[Mark, tuple[float, Job]] = {}
        #: When the first of them is to be told, in monotonic seconds.
        self.due = NEVER

    def add(self, job: Job, now: float) -> None:
        due = now + STARTED_DELAY
        self._waiting[job.key] = (due, job)
        if due < self.due:
            self.due = due

    def drop(self, key: Mark) -> None:
        """It ended, and its receipt tells the start."""
        if self._waiting.pop(key, None) is not None:
            self._look_at_first()

    def take(self, now: float) -> list[Job]:
        """Those that are to be told now."""
        taken = [job for due, job in self._waiting.values() if due <= now]
        for job in taken:
            del self._waiting[job.key]
        self._look_at_first()
        return taken

    def _look_at_first(self) -> None:
        self.due = NEVER
        for due, _ in self._waiting.values():
            self.due = due
            return
