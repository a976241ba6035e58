"""How many requests a kind of client may send in a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from forge_actors.edges.gateway.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds for which somebody who was quiet may send at once what is allowed in them.
BURST_SECONDS = 2.0


class Bucket:
    """Lets `rate` requests a second pass, and some more at once after a silence."""

    def __init__(self, rate: float, now: Callable[[], float]) -> None:
        self._rate = rate
        self._now = now
        self._most = max(1.0, rate * BURST_SECONDS)
        self._left = self._most
        self._at = now()

    def take(self) -> None:
        """Count one request.

        Raises:
            Refusal: it is one too many; it says when the next one may come.
        """
        now = self._now()
        self._left = min(self._most, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            wait = math.ceil((1 - self._left) / self._rate)
            raise Refusal(
                429,
                f"there are more than {self._rate:g} requests a second; try again in"
                f" {wait} s",
                {"retry-after": str(wait)},
            )
        self._left -= 1
