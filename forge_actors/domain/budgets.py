"""Queue budgets: how long jobs may still wait, and when the first runs out."""

from __future__ import annotations

from heapq import heappop, heappush


class QueueBudgets:
    """Those of the waiting jobs of one repository. One that stands still has no end."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []
        #: When it runs out, in wall-clock seconds; or how much is left, in seconds.
        self._due: dict[str, float] = {}
        self._left: dict[str, float] = {}

    def jobs(self) -> list[str]:
        return [*self._due, *self._left]

    def begin(self, job: str, seconds: float) -> None:
        """A budget of its own for a job; it stands still."""
        self._due.pop(job, None)
        self._left[job] = seconds

    def go_on(self, job: str, now: float) -> None:
        left = self._left.pop(job, None)
        if left is not None:
            self._due[job] = now + left
            heappush(self._heap, (now + left, job))

    def stand_still(self, job: str, now: float) -> None:
        due = self._due.pop(job, None)
        if due is not None:
            self._left[job] = due - now

    def forget(self, job: str) -> None:
        """It has started or ended."""
        self._due.pop(job, None)
        self._left.pop(job, None)

    def first(self) -> tuple[float, str] | None:
        """The moment in which the next one runs out, and the job."""
        while self._heap:
            due, job = self._heap[0]
            # One that stood still, or was begun anew, left its old moment here.
            if self._due.get(job) == due:
                return due, job
            heappop(self._heap)
        return None
