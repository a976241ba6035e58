"""The steps of a workflow as a graph: lines of text, and a picture in one file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.errors import Refused
from forge_actors.domain.picture.marks import plain
from forge_actors.domain.picture.markup import escape, hint, tag

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.workflow_steps import StepState
    from forge_actors.domain.workflow_views import StepView, WorkflowView

#: Steps that are drawn.
MAX_DRAWN = 2000
#: Of a box, and between two of them, in pixels.
WIDTH, HEIGHT, ACROSS, DOWN, MARGIN = 180, 30, 60, 12, 16
#: Characters of a name that fit into a box.
_FITS = 22


class Look(Struct, frozen=True):
    """A mark, as a colour never stands alone, and the colours for light and dark."""

    sign: str
    light: str
    dark: str


LOOKS: dict[StepState, Look] = {
    "succeeded": Look("✓", "#2f9e6e", "#3fae7d"),
    "failed": Look("✕", "#cf3f3a", "#e0605a"),
    "running": Look("▸", "#2f74d0", "#5192ea"),
    "asking": Look("?", "#8e4ec6", "#a974dd"),
    "skipped": Look("-", "#8a94a3", "#77818f"),
    "cancelled": Look("⊘", "#8a94a3", "#77818f"),
    "waiting": Look("·", "#5d6878", "#98a3b3"),
}
_STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #1c2430; }
rect { fill: #fff; stroke-width: 1.5; }
path { fill: none; stroke: #9aa4b2; stroke-width: 1; }
@media (prefers-color-scheme: dark) {
  svg { background: #14181d; } text { fill: #e4e8ee; } rect { fill: #1b2129; }
  path { stroke: #5a6371; }
}
"""


def lines(view: WorkflowView) -> Iterator[str]:
    """A line for each step, behind those that it runs after, and as far to the right
    as the longest way to it."""
    depths = _depths(view)
    for step in sorted(view.steps, key=lambda step: depths[step.name]):
        look, indent = LOOKS[step.state], "  " * depths[step.name]
        after = f"  <- {', '.join(step.after)}" if step.after else ""
        why = step.gate if step.state == "asking" else step.why
        note = f"  ({plain(why)})" if why else ""
        yield f"{indent}{look.sign} {step.name}  {step.state}{after}{note}"


def picture(view: WorkflowView) -> str:
    """The whole file, in SVG. It has no script, and needs nothing else.

    Raises:
        Refused: there are too many steps to draw.
    """
    if len(view.steps) > MAX_DRAWN:
        raise Refused(
            f"{len(view.steps)} steps are too many for a picture, which has at most"
            f" {MAX_DRAWN}; forge-actors workflow graph without --svg tells them all"
        )
    places = _places(view)
    columns = 1 + max((column for column, _ in places.values()), default=0)
    rows = 1 + max((row for _, row in places.values()), default=0)
    wide = 2 * MARGIN + columns * WIDTH + (columns - 1) * ACROSS
    high = 2 * MARGIN + rows * HEIGHT + (rows - 1) * DOWN
    edges = [
        _edge(places[before], places[step.name])
        for step in view.steps
        for before in step.after
    ]
    boxes = [_box(step, places[step.name]) for step in view.steps]
    light = "".join(f".{s} {{ stroke: {k.light}; }}" for s, k in LOOKS.items())
    dark = "".join(f".{s} {{ stroke: {k.dark}; }}" for s, k in LOOKS.items())
    style = f"{_STYLE}{light}@media (prefers-color-scheme: dark) {{{dark}}}"
    title = f"{view.name}: {view.state}"
    drawn = tag(
        "svg",
        tag("title", escape(plain(title))),
        tag("style", style),
        *edges,
        *boxes,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {wide} {high}",
        width=wide,
        height=high,
    )
    return f"{drawn}\n"


def _depths(view: WorkflowView) -> dict[str, int]:
    """The longest way to each step, in steps."""
    waiting = {step.name: len(step.after) for step in view.steps}
    behind: dict[str, list[str]] = {step.name: [] for step in view.steps}
    for step in view.steps:
        for before in step.after:
            behind[before].append(step.name)
    depths = {name: 0 for name, count in waiting.items() if count == 0}
    free = list(depths)
    for name in free:
        for other in behind[name]:
            depths[other] = max(depths.get(other, 0), depths[name] + 1)
            waiting[other] -= 1
            if waiting[other] == 0:
                free.append(other)
    return depths


def _places(view: WorkflowView) -> dict[str, tuple[int, int]]:
    """The column and the row of each step: beside what it runs after, as near as its
    column has room."""
    depths = _depths(view)
    places: dict[str, tuple[int, int]] = {}
    next_row: dict[int, int] = {}
    for step in sorted(view.steps, key=lambda step: depths[step.name]):
        column = depths[step.name]
        before = [places[name][1] for name in step.after]
        row = max(next_row.get(column, 0), min(before, default=0))
        places[step.name] = (column, row)
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


def _box(step: StepView, place: tuple[int, int]) -> str:
    x, y = _corner(place)
    name = plain(step.name)
    short = name if len(name) <= _FITS else f"{name[: _FITS - 1]}…"
    told = [f"{name}: {step.state}"]
    told += [plain(text) for text in (step.gate, step.why) if text]
    told += [f"job {step.job}"] if step.job else []
    frame = tag("rect", x=x, y=y, width=WIDTH, height=HEIGHT, rx=5, class_=step.state)
    label = tag("text", escape(f"{LOOKS[step.state].sign} {short}"), x=x + 10, y=y + 19)
    return tag("g", hint(told), frame, label)
