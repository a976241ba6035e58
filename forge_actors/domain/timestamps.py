"""How moments are written for readers."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

_MILLISECONDS = tuple(f".{number:03}Z" for number in range(1000))


# Thousands of jobs are shown at once, and those of a batch have moments in common.
@lru_cache(maxsize=256)
def timestamp(seconds: float) -> str:
    """RFC 3339 in UTC, to the millisecond, of `seconds` since the epoch."""
    whole, milliseconds = divmod(int(seconds * 1000), 1000)
    return _to_the_second(whole) + _MILLISECONDS[milliseconds]


@lru_cache(maxsize=256)
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
