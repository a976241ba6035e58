"""Lines of JSON as agent programs print them, read leniently.

Most lines are looked at for their type alone; those that say something are decoded
whole. Nothing that a program prints makes its reader fail: what is not as it should be
is as if it were not there.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct


class Head(Struct):
    """The only thing that every event has."""

    type: str


_head = msgspec.json.Decoder(Head).decode
_whole = msgspec.json.Decoder(dict[str, Any]).decode


def type_of(line: bytes) -> str | None:
    """What kind of event a line is; None if it is none."""
    try:
        return _head(line).type
    except (msgspec.MsgspecError, RecursionError):
        return None


def decoded(line: bytes) -> dict[str, Any]:
    """All of an event. What is no UTF-8 in it is replaced."""
    try:
        return _whole(line)
    except (msgspec.MsgspecError, RecursionError):
        pass
    try:
        return _whole(line.decode("utf-8", "replace"))
    except (msgspec.MsgspecError, RecursionError):
        return {}


def table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def tables(value: object) -> list[dict[str, Any]]:
    """The tables of a list."""
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(value: object) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known else None  # type: ignore[arg-type]
