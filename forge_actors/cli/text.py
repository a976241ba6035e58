"""Text that others wrote, made fit for a terminal; and tables that fit its width."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from forge_actors.domain.harmless import clean as clean
from forge_actors.domain.harmless import clean_lines as clean_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DEFAULT_WIDTH = 80
LEAST_COLUMN = 8
#: Columns of a cell when nothing must fit: one long name must not widen every line.
MAX_CELL = 200
GAP = "  "


def width(text: str) -> int:
    """Columns that `text` takes in a terminal."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(char) else 1 + (east in ("W", "F"))
        for char in text
        for east in [unicodedata.east_asian_width(char)]
    )


def fit(text: str, columns: int) -> str:
    """`text` cut to at most `columns`, with a mark where it was cut."""
    if width(text) <= columns:
        return text
    while text and width(text) > columns - 1:
        text = text[: -max(1, (width(text) - columns) // 2)]
    return f"{text}…" if columns > 0 else ""


def terminal_width() -> int | None:
    """Columns of the terminal on stdout; None if it is none and nothing must fit."""
    if not sys.stdout.isatty():
        return None
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or DEFAULT_WIDTH
    except OSError:
        return DEFAULT_WIDTH


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    columns: int | None,
    flexible: Sequence[int] = (),
    paint: tuple[int, Callable[[str], str]] | None = None,
) -> list[str]:
    """Lines of a table whose cells are cleaned; `flexible` columns give way first.

    The cells of one column may be painted, which takes no columns.
    """
    most = MAX_CELL if columns is None else max(columns, LEAST_COLUMN)
    cells = [list(head), *([fit(clean(cell), most) for cell in row] for row in rows)]
    widths = [max(width(row[i]) for row in cells) for i in range(len(head))]
    if columns is not None:
        _shrink(widths, columns - len(GAP) * (len(head) - 1), flexible)
    lines: list[str] = []
    for row in cells:
        fitted = [fit(cell, size) for cell, size in zip(row, widths, strict=True)]
        padded = [
            cell + " " * (size - width(cell))
            for cell, size in zip(fitted, widths, strict=True)
        ]
        line = GAP.join(padded).rstrip()
        line = line if columns is None else fit(line, columns)
        if paint is not None and lines:
            place = sum(len(cell) + len(GAP) for cell in padded[: paint[0]])
            cell = fitted[paint[0]]
            if line[place:].startswith(cell):
                line = line[:place] + paint[1](cell) + line[place + len(cell) :]
        lines.append(line)
    return lines


def _shrink(widths: list[int], room: int, flexible: Sequence[int]) -> None:
    """Take what is too much from the widest flexible columns, a cell at a time."""
    while sum(widths) > room:
        widest = max(flexible, key=widths.__getitem__, default=None)
        if widest is None or widths[widest] <= LEAST_COLUMN:
            return
        widths[widest] -= 1


def span(seconds: float) -> str:
    """A length of time in two units at most: `42s`, `3m 20s`, `5h 1m`, `2d 3h`."""
    left = max(0, int(seconds))
    units = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
    for (unit, size), below in zip(units, (*units[1:], None), strict=True):
        if left >= size:
            text = f"{left // size}{unit}"
            rest = left % size // below[1] if below else 0
            return f"{text} {rest}{below[0]}" if below and rest else text
    return "0s"
