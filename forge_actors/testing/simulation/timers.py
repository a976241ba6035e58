"""Timers: everything of the simulated world that happens at a moment.

They are the clock of the run too. When nothing more can happen now, trio's mock clock
jumps; here it jumps to the next moment of the world or of trio, whichever is first, and
what is due of the world happens between two turns of the loop, in no task. What is due
at the same moment happens in the order in which it was set.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import trio.testing
from trio._core._run import GLOBAL_RUN_CONTEXT

if TYPE_CHECKING:
    from collections.abc import Callable


class Timer:
    """Something that is to happen; `cancel` before that and it never does."""

    __slots__ = ("act",)

    def __init__(self, act: Callable[[], object]) -> None:
        self.act: Callable[[], object] | None = act

    def cancel(self) -> None:
        self.act = None


class Timers:
    """The timers of one run, and its clock."""

    def __init__(self) -> None:
        self.clock = trio.testing.MockClock(autojump_threshold=0)
        # No real time is ever looked at: a run takes as long as it takes.
        self.clock.current_time = self.now  # type: ignore[method-assign]
        self.clock._autojump = self._jump  # type: ignore[method-assign]
        #: Told of what fails at a timer.
        self.failed: Callable[[Exception], None]
        self._now = 0.0
        self._heap: list[tuple[float, int, Timer]] = []
        self._made = 0

    def now(self) -> float:
        return self._now

    def after(self, seconds: float, act: Callable[[], object]) -> Timer:
        """Let it happen in so many seconds, and not in this very step."""
        return self.at(self._now + seconds, act)

    def at(self, due: float, act: Callable[[], object]) -> Timer:
        timer = Timer(act)
        self._made += 1
        heappush(self._heap, (due, self._made, timer))
        return timer

    def _jump(self) -> None:
        heap, deadlines = self._heap, GLOBAL_RUN_CONTEXT.runner.deadlines
        due = heap[0][0] if heap else math.inf
        target = min(due, deadlines.next_deadline())
        if target == math.inf:
            return
        self._now = max(self._now, target)
        while heap and heap[0][0] <= self._now:
            act = heappop(heap)[2].act
            if act is not None:
                try:
                    act()
                except Exception as error:  # noqa: BLE001 - the run ends with it
                    self.failed(error)
        deadlines.expire(self._now)
