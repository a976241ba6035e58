"""Progress: which parts have been at the same thing for too long."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping


K = TypeVar("K", bound=Hashable)


class Seen(Struct, frozen=True):
    """What a part had served when it was looked at, and since when it is busy with it.

    `since` is None while it is idle. Times are seconds of any clock that only grows.
    """

    served: int
    since: float | None

    def after(self, served: int, now: float, *, idle: bool) -> Seen:
        """What is seen at the next look."""
        if idle:
            return Seen(served, None)
        same = self.since is not None and served == self.served
        return Seen(served, self.since if same else now)

    def seconds(self, now: float) -> float:
        """For how long it is known to be at the same thing."""
        return 0.0 if self.since is None else now - self.since


#: What was seen of a part that was never looked at.
NEW = Seen(0, None)


def stalled(seen: Mapping[K, Seen], now: float, limit: float) -> dict[K, float]:
    """Those that have been at the same thing for the limit, and for how long."""
    found = ((part, each.seconds(now)) for part, each in seen.items())
    return {part: seconds for part, seconds in found if seconds >= limit}
