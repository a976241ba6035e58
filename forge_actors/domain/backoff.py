"""Backoff: how long a job that may run again waits before it does."""

from __future__ import annotations

import zlib
from heapq import heappop, heappush

from msgspec import Struct

#: The largest part of a delay that jitter takes away.
JITTER = 0.2
#: Doublings after which no delay is below any limit.
_MOST_DOUBLINGS = 40


class Backoff(Struct, frozen=True):
    """The first delay, doubled with each further attempt up to the longest; seconds."""

    first: float = 1.0
    longest: float = 300.0

    def delay(self, job: str, attempt: int) -> float:
        """The delay after this attempt of a job.

        Jobs that failed together do not come back together: each delay is shorter by up
        to a fifth, by chance, but the same one each time it is asked for.
        """
        doubled: float = self.first * 2 ** min(attempt - 1, _MOST_DOUBLINGS)
        chance = zlib.crc32(f"{job}:{attempt}".encode()) / 2**32
        return min(self.longest, doubled) * (1.0 - JITTER * chance)


DEFAULT = Backoff()


class Retries:
    """The jobs of one repository that wait for the moment of their next attempt."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}
        #: The most that one may wait from any moment on, if that is not the usual.
        self._longest: dict[str, float] = {}

    def add(self, job: str, due: float, longest: float | None = None) -> None:
        self._due[job] = due
        if longest is not None:
            self._longest[job] = longest
        heappush(self._heap, (due, job))

    def due(self, job: str) -> float | None:
        """When it is its turn; None if it does not wait for that."""
        return self._due.get(job)

    def forget(self, job: str) -> None:
        self._due.pop(job, None)
        self._longest.pop(job, None)

    def first(self) -> float | None:
        """The next moment of all."""
        while self._heap:
            due, job = self._heap[0]
            if self._due.get(job) == due:
                return due
            heappop(self._heap)
        return None

    def take_due(self, now: float, longest: float) -> list[str]:
        """Those whose moment has come; they wait no more.

        Nobody without a longest wait of its own waits for longer than `longest`: a
        clock that was set back could otherwise keep a job waiting for as long as that
        was.
        """
        taken: list[str] = []
        while (first := self.first()) is not None:
            most = now + self._longest.get(self._heap[0][1], longest)
            if now < first <= most:
                break
            _, job = heappop(self._heap)
            if first <= now:
                self.forget(job)
                taken.append(job)
            else:
                self.add(job, most)
        return taken
