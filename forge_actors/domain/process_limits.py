"""The limits of a job's processes, as people write them."""

from __future__ import annotations

import re

from forge_actors.domain.errors import InvalidInput

MAX_NICE = 19
MIN_MEMORY, MAX_MEMORY = 1 << 20, 1 << 50
MAX_PIDS = 1 << 22

_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_SIZE = re.compile(r"(?P<number>[0-9]{1,18})(?P<unit>[KMGT]?)(?:I?B)?")


def parse_nice(value: int, *, field: str) -> int:
    """How far a job steps back behind others, 0 to 19."""
    return _within(value, 0, MAX_NICE, field)


def parse_memory(value: str | int, *, field: str) -> int:
    """Bytes from `1073741824`, `"512M"` or `"2G"`; 1024 of a unit make the next.

    Raises:
        InvalidInput: anything else, or outside 1M to 1024T.
    """
    text = str(value).strip().upper()
    match = _SIZE.fullmatch(text)
    if match is None:
        raise InvalidInput(
            field, f"{value!r} is no size; write for example 512M or 2G (K, M, G, T)"
        )
    size = int(match["number"]) << _UNITS[match["unit"]]
    if not MIN_MEMORY <= size <= MAX_MEMORY:
        raise InvalidInput(field, f"{value!r} is outside 1M to 1024T")
    return size


def parse_pids(value: int, *, field: str) -> int:
    """Processes and threads that a job may add, 1 to 4,194,304."""
    return _within(value, 1, MAX_PIDS, field)


def _within(value: int, least: int, most: int, field: str) -> int:
    if not least <= value <= most:
        raise InvalidInput(field, f"{value} is outside {least} to {most}")
    return value
