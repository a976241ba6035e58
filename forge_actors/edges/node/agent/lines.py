"""Messages as lines of JSON."""

from __future__ import annotations

import json
from json import encoder
from typing import Any

_encoder = json.JSONEncoder(separators=(",", ":"))
_decode = json.JSONDecoder().decode
# What `_encoder` makes anew for each message, which costs more than encoding one. Not
# every Python has it.
_make_parts_of = getattr(encoder, "c_make_encoder", None)
_parts_of = _make_parts_of and _make_parts_of(
    None,
    _encoder.default,
    encoder.encode_basestring_ascii,
    None,
    _encoder.key_separator,
    _encoder.item_separator,
    False,
    False,
    True,
)


def line_of(message: dict[str, Any]) -> bytes:
    """One line, without its newline."""
    if _parts_of is None:
        return _encoder.encode(message).encode()
    return "".join(_parts_of(message, 0)).encode()


def message_of(line: bytes) -> dict[str, Any]:
    """What a line says.

    Raises:
        ValueError: it is no JSON.
    """
    message: dict[str, Any] = _decode(line.decode())
    return message
