"""A clock for tests: it moves with trio's clock, so a mock clock moves both."""

from __future__ import annotations

import trio

#: Where it starts if nobody says otherwise: 2026-01-02 03:04:05 UTC.
START = 1_767_323_045.0


class FakeClock:
    """The port `Clock`: `start` seconds since 1970 at the first look at it."""

    def __init__(self, start: float = START) -> None:
        self._start = start
        self._origin: float | None = None
        self._ahead = 0.0

    def now(self) -> float:
        moment = trio.current_time()
        if self._origin is None:
            self._origin = moment
        return self._start + (moment - self._origin)

    def wall(self) -> float:
        return self.now() + self._ahead

    def ahead(self) -> float:
        return self._ahead

    def shift(self, seconds: float) -> None:
        """Let so much time have passed that nobody waited for."""
        self._start += seconds

    def set_wall(self, seconds: float) -> None:
        """Set the wall clock forward or, with a negative number, back."""
        self._ahead += seconds
