"""Timers: everything of the simulated world that happens at a moment, in one task.

What is due at the same moment happens in the order in which it was set.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable


class Timer:
    """Something that is to happen; `cancel` before that and it never does."""

    __slots__ = ("act", "due")

    def __init__(self, due: float, act: Callable[[], object]) -> None:
        self.due = due
        self.act: Callable[[], object] | None = act

    def cancel(self) -> None:
        self.act = None


class Timers:
    """The timers of one run, on trio's clock."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._made = 0
        self._scope: trio.CancelScope | None = None

    def after(self, seconds: float, act: Callable[[], object]) -> Timer:
        """Let it happen in so many seconds, and not in this very step."""
        return self.at(trio.current_time() + seconds, act)

    def at(self, due: float, act: Callable[[], object]) -> Timer:
        timer = Timer(due, act)
        self._made += 1
        heappush(self._heap, (due, self._made, timer))
        if self._scope is not None and due < self._scope.deadline:
            self._scope.deadline = due
        return timer

    async def run(self) -> None:
        while True:
            due = self._heap[0][0] if self._heap else math.inf
            if due > trio.current_time():
                with trio.CancelScope(deadline=due) as self._scope:
                    await trio.sleep_forever()
                self._scope = None
            now = trio.current_time()
            while self._heap and self._heap[0][0] <= now:
                _, _, timer = heappop(self._heap)
                if timer.act is not None:
                    timer.act()
            await trio.lowlevel.checkpoint()
