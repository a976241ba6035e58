"""An alarm on the wall clock: it rings at a time of people, or when their clock is set.

A timer of trio counts the seconds that the machine was awake. A schedule is due at a
time of the day, also after a night in which the machine slept.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.ports import WallTimer


class WallAlarm:
    """One timer. `run` is its task; it rings once for each moment that was set."""

    def __init__(self, timer: WallTimer, ring: Callable[[], object]) -> None:
        self._timer = timer
        self._ring = ring
        self._due = math.inf
        self._scope = trio.CancelScope()

    def set(self, due: float) -> None:
        """Ring at this moment instead; infinite is never."""
        if due != self._due:
            self._due = due
            self._scope.cancel()

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        while True:
            with trio.CancelScope() as self._scope:
                await self._timer.wait(self._due)
            if not self._scope.cancelled_caught:
                self._due = math.inf
                self._ring()
