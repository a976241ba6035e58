"""JSON schemas of arguments: one object each, without references."""

from __future__ import annotations

from typing import Any

import msgspec

_NULL = {"type": "null"}


def schema_of(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """The schema of a Struct, whole in itself: many clients follow no references."""
    schema = msgspec.json.schema(arguments)
    found: dict[str, Any] = _plain(schema, schema.get("$defs", {}))
    return found


def _plain(part: Any, known: dict[str, Any]) -> Any:
    if isinstance(part, list):
        return [_plain(each, known) for each in part]
    if not isinstance(part, dict):
        return part
    reference = part.get("$ref")
    if reference is not None:
        part = {**known[reference.rpartition("/")[2]], **part}
        del part["$ref"]
    plain = {name: _plain(value, known) for name, value in part.items()}
    plain.pop("$defs", None)
    if "properties" in plain:
        del plain["title"]  # the name of a class of ours
    # Agents read all of it: what may be left out need not be told to be null or empty.
    if plain.get("default", 0) in (None, [], {}):
        del plain["default"]
    choices = [each for each in plain.get("anyOf", ()) if each != _NULL]
    if len(choices) == 1:
        del plain["anyOf"]
        plain |= choices[0]
    return plain
