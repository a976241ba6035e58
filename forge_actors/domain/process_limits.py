"""The limits of a job's processes, as people write them."""

from __future__ import annotations

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.sizes import parse_size

MAX_NICE = 19
MIN_MEMORY = 1 << 20
MAX_PIDS = 1 << 22


def parse_nice(value: int, *, field: str) -> int:
    """How far a job steps back behind others, 0 to 19."""
    return _within(value, 0, MAX_NICE, field)


def parse_memory(value: str | int, *, field: str) -> int:
    """Bytes from `1073741824`, `"512M"` or `"2G"`; 1024 of a unit make the next.

    Raises:
        InvalidInput: anything else, or outside 1M to 1024T.
    """
    return parse_size(value, field=field, least=MIN_MEMORY)


def parse_pids(value: int, *, field: str) -> int:
    """Processes and threads that a job may add, 1 to 4,194,304."""
    return _within(value, 1, MAX_PIDS, field)


def _within(value: int, least: int, most: int, field: str) -> int:
    if not least <= value <= most:
        raise InvalidInput(field, f"{value} is outside {least} to {most}")
    return value
