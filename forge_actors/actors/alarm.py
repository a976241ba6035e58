"""An alarm: tells an actor that a moment has come.

A timeout around each receive would be the obvious way. Making and leaving a scope costs
as much as handling a message, for every message; this one is made once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable


class Alarm:
    """One timer. `run` is its task; it rings once for each moment that was set."""

    def __init__(self, ring: Callable[[], object], due: float) -> None:
        self._ring = ring
        #: When it rings next, on trio's clock; infinite if it is not set.
        self.due = due
        self._stopped = False
        self._scope = trio.CancelScope()

    def set(self, due: float) -> None:
        """Ring at this moment instead."""
        self.due = self._scope.deadline = due

    def stop(self) -> None:
        """Ring no more; `run` returns."""
        self._stopped = True
        self._scope.cancel()

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        while not self._stopped:
            with trio.CancelScope(deadline=self.due) as self._scope:
                await trio.sleep_forever()
            if not self._stopped:
                self.due = math.inf
                self._ring()
