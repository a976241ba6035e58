"""A wall clock for tests: it moves with trio's clock, so a mock clock moves both."""

from __future__ import annotations

import trio

#: Where it starts if nobody says otherwise: 2026-01-02 03:04:05 UTC.
START = 1_767_323_045.0


class FakeClock:
    """The port `Clock`: `start` seconds since 1970 at the first look at it."""

    def __init__(self, start: float = START) -> None:
        self._start = start
        self._origin: float | None = None

    def now(self) -> float:
        moment = trio.current_time()
        if self._origin is None:
            self._origin = moment
        return self._start + (moment - self._origin)

    def shift(self, seconds: float) -> None:
        """Set the clock forward or, with a negative number, back."""
        self._start += seconds
