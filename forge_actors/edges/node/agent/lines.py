"""Messages as lines of JSON."""

from __future__ import annotations

import json
from typing import Any

_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().decode


def line_of(message: dict[str, Any]) -> bytes:
    """One line, without its newline."""
    return _encode(message).encode()


def message_of(line: bytes) -> dict[str, Any]:
    """What a line says.

    Raises:
        ValueError: it is no JSON.
    """
    message: dict[str, Any] = _decode(line.decode())
    return message
