"""Artifacts as a person reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.text import clean, table, terminal_width

if TYPE_CHECKING:
    Json = dict[str, Any]

#: Characters of a hash that tell files apart.
HASH = 12


def summary(artifacts: Json) -> str:
    """One line: how it went, and how much there is."""
    count, size = len(artifacts["files"]), artifacts["bytes"]
    words = f"{artifacts['state']}, {count} files, {size} bytes"
    return f"{words}: {artifacts['error']}" if artifacts["error"] else words


def file_lines(artifacts: Json) -> list[str]:
    """A line a file; none if there are none."""
    rows = [
        (each["path"], str(each["bytes"]), each["sha256"][:HASH])
        for each in artifacts["files"]
    ]
    if not rows:
        return []
    head = ("PATH", "BYTES", "SHA256")
    return table(head, rows, columns=terminal_width(), flexible=[0])


def left_out_lines(artifacts: Json) -> list[str]:
    """A line for each that was left out, and why."""
    lines = [
        clean(f"{each['path'] or 'the rest'}: {each['reason']}")
        for each in artifacts["left_out"]
    ]
    more = artifacts["left_out_more"]
    return [*lines, f"and {more} more"] if more else lines
