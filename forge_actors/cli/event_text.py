"""How an event reads in a line. Works on the JSON of an event."""

from __future__ import annotations

from typing import Any

from forge_actors.cli.job_text import TAIL
from forge_actors.cli.text import clean

Json = dict[str, Any]

#: Columns that most kinds and jobs need, so that lines stand below each other.
KIND = 20
JOB = 6


#: Said in another way, or before.
_TOLD = ("error", "reason", "name")


def line(event: Json) -> str:
    """When, what, which job of which repository, and why. Clean."""
    moment = f"{str(event['at'])[:19]}Z"
    job = str(event["job"] or "-")[-TAIL:]
    name = event.get("job_name")
    subject = f"{event['repo'] or '-'}{f' ({name})' if name else ''}"
    told = f"{moment}  {event['kind']:<{KIND}}  {job:<{JOB}}  {subject}"
    rest = words(event["data"])
    return clean(f"{told}  {rest}" if rest else told)


def words(data: Json) -> str:
    """The reason first, then the rest as it comes."""
    error = data.get("error")
    parts = [f"{error['code']}: {error['message']}"] if error else []
    if "reason" in data:
        parts.append(str(data["reason"]))
    parts += [
        f"{name} {_value(name, value)}"
        for name, value in data.items()
        if name not in _TOLD and value not in (None, [], {}, "")
    ]
    return ", ".join(parts)


def _value(name: str, value: object) -> str:
    if name == "claims" and isinstance(value, list):
        return " ".join(map(claim, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, dict):
        return " ".join(f"{key}={_value(key, inner)}" for key, inner in value.items())
    return str(value)


def claim(parts: object) -> str:
    """A claim as one would write it: its mode, its family and what is left of it."""
    if not isinstance(parts, list):
        return str(parts)
    return ":".join(str(part) for part in parts[:3] if part)
