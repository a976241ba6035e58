"""Numbers of bytes, as people write and read them; 1024 of a unit make the next."""

from __future__ import annotations

import re

from forge_actors.domain.errors import InvalidInput

MAX_SIZE = 1 << 50

_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_SIZE = re.compile(r"(?P<number>[0-9]{1,18})(?P<unit>[KMGT]?)(?:I?B)?")


def parse_size(value: str | int, *, field: str, least: int = 0) -> int:
    """Bytes from `1073741824`, `"512M"` or `"2G"`; `least` are whole MiB.

    Raises:
        InvalidInput: anything else, or fewer than `least`, or more than 1024T.
    """
    match = _SIZE.fullmatch(str(value).strip().upper())
    if match is None:
        raise InvalidInput(
            field, f"{value!r} is no size; write for example 512M or 2G (K, M, G, T)"
        )
    size = int(match["number"]) << _UNITS[match["unit"]]
    if not least <= size <= MAX_SIZE:
        raise InvalidInput(field, f"{value!r} is outside {least >> 20}M to 1024T")
    return size


def size_text(size: int) -> str:
    """`1536` as `1.5 KiB`."""
    units = iter(("bytes", "KiB", "MiB", "GiB", "TiB"))
    number, unit = float(size), next(units)
    while abs(number) >= 1024 and unit != "TiB":
        number, unit = number / 1024, next(units)
    digits = 0 if number >= 100 else 1
    return f"{number:.{digits}f}".removesuffix(".0") + f" {unit}"
