"""Boxes that are behind each other: as lines of text, and as a picture in one file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.picture.marks import plain
from forge_actors.domain.picture.markup import escape, hint, tag

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: Of a box, and between two of them, in pixels.
WIDTH, HEIGHT, ACROSS, DOWN, MARGIN = 180, 30, 60, 12, 16
#: Characters of a name that fit into a box.
_FITS = 22
_STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #1c2430; }
rect { fill: #fff; stroke-width: 1.5; }
path { fill: none; stroke: #9aa4b2; stroke-width: 1; }
@media (prefers-color-scheme: dark) {
  svg { background: #14181d; } text { fill: #e4e8ee; } rect { fill: #1b2129; }
  path { stroke: #5a6371; }
}
"""


class Look(Struct, frozen=True):
    """A mark, as a colour never stands alone, and the colours for light and dark."""

    sign: str
    light: str
    dark: str


class Box(Struct, frozen=True):
    """One box; `after` are names of others, of which some may not be there."""

    name: str
    #: One of those that have a look.
    state: str
    after: Sequence[str] = ()
    #: What stands in it; else its name.
    label: str = ""
    #: In a line, behind everything else.
    note: str = ""
    #: Lines that a pointer brings up.
    told: Sequence[str] = ()


def lines(boxes: Sequence[Box], looks: Mapping[str, Look]) -> Iterator[str]:
    """A line for each box, behind those that it comes after, and as far to the right
    as the longest way to it."""
    depths = _depths(boxes)
    for box in sorted(boxes, key=lambda box: depths[box.name]):
        indent = "  " * depths[box.name]
        after = f"  <- {', '.join(box.after)}" if box.after else ""
        note = f"  ({plain(box.note)})" if box.note else ""
        name = plain(box.label) or box.name
        yield f"{indent}{looks[box.state].sign} {name}  {box.state}{after}{note}"


def picture(boxes: Sequence[Box], looks: Mapping[str, Look], title: str) -> str:
    """The whole file, in SVG. It has no script, and needs nothing else."""
    places = _places(boxes)
    columns = 1 + max((column for column, _ in places.values()), default=0)
    rows = 1 + max((row for _, row in places.values()), default=0)
    wide = 2 * MARGIN + columns * WIDTH + (columns - 1) * ACROSS
    high = 2 * MARGIN + rows * HEIGHT + (rows - 1) * DOWN
    edges = [
        _edge(places[before], places[box.name])
        for box in boxes
        for before in box.after
        if before in places
    ]
    light = "".join(f".{s} {{ stroke: {k.light}; }}" for s, k in looks.items())
    dark = "".join(f".{s} {{ stroke: {k.dark}; }}" for s, k in looks.items())
    style = f"{_STYLE}{light}@media (prefers-color-scheme: dark) {{{dark}}}"
    drawn = tag(
        "svg",
        tag("title", escape(plain(title))),
        tag("style", style),
        *edges,
        *(_box(box, places[box.name], looks) for box in boxes),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {wide} {high}",
        width=wide,
        height=high,
    )
    return f"{drawn}\n"


def _depths(boxes: Sequence[Box]) -> dict[str, int]:
    """The longest way to each box, in boxes; those that are in a circle, and behind
    one, come last."""
    names = {box.name for box in boxes}
    before = {box.name: names.intersection(box.after) for box in boxes}
    waiting = {name: len(found) for name, found in before.items()}
    behind: dict[str, list[str]] = {name: [] for name in names}
    for name, found in before.items():
        for other in found:
            behind[other].append(name)
    depths = {box.name: 0 for box in boxes if waiting[box.name] == 0}
    free = list(depths)
    for name in free:
        for other in behind[name]:
            depths[other] = max(depths.get(other, 0), depths[name] + 1)
            waiting[other] -= 1
            if waiting[other] == 0:
                free.append(other)
    last = 1 + max((depths[name] for name in free), default=-1)
    return {name: depths[name] if waiting[name] == 0 else last for name in names}


def _places(boxes: Sequence[Box]) -> dict[str, tuple[int, int]]:
    """The column and the row of each box: beside what it comes after, as near as its
    column has room."""
    depths = _depths(boxes)
    places: dict[str, tuple[int, int]] = {}
    next_row: dict[int, int] = {}
    for box in sorted(boxes, key=lambda box: depths[box.name]):
        column = depths[box.name]
        before = [places[name][1] for name in box.after if name in places]
        row = max(next_row.get(column, 0), min(before, default=0))
        places[box.name] = (column, row)
        next_row[column] = row + 1
    return places


def _corner(place: tuple[int, int]) -> tuple[int, int]:
    column, row = place
    return MARGIN + column * (WIDTH + ACROSS), MARGIN + row * (HEIGHT + DOWN)


def _edge(start: tuple[int, int], end: tuple[int, int]) -> str:
    x1, y1 = _corner(start)
    x2, y2 = _corner(end)
    x1, y1, y2 = x1 + WIDTH, y1 + HEIGHT // 2, y2 + HEIGHT // 2
    bend = ACROSS // 2
    return tag("path", d=f"M {x1} {y1} C {x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}")


def _box(box: Box, place: tuple[int, int], looks: Mapping[str, Look]) -> str:
    x, y = _corner(place)
    name = plain(box.label) or plain(box.name)
    short = name if len(name) <= _FITS else f"{name[: _FITS - 1]}…"
    told = [f"{name}: {box.state}", *map(plain, box.told)]
    frame = tag("rect", x=x, y=y, width=WIDTH, height=HEIGHT, rx=5, class_=box.state)
    label = tag("text", escape(f"{looks[box.state].sign} {short}"), x=x + 10, y=y + 19)
    return tag("g", hint(told), frame, label)
