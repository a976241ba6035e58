"""A timer of the wall clock for tests: it goes with trio, so with a mock clock too."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from forge_actors.testing.clock import FakeClock


class FakeWallTimer:
    """The port `WallTimer` on a fake clock; `set` says that the clock was set."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._set = trio.Event()
        #: How often somebody began to wait.
        self.waits = 0

    async def wait(self, until: float) -> None:
        self.waits += 1
        ahead = until - self._clock.wall()
        with trio.move_on_after(max(0.0, ahead) if ahead < math.inf else math.inf):
            await self._set.wait()

    def set(self, seconds: float) -> None:
        self._clock.set_wall(seconds)
        self._set.set()
        self._set = trio.Event()
