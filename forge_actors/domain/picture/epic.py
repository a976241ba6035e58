"""The issues of an EPIC as a graph: lines of text, and a picture in one file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.picture import boxes
from forge_actors.domain.picture.boxes import Box, Look

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.epic.views import ChildView, EpicView

#: By what is to become of an issue; `running` has a worker of this run.
LOOKS: dict[str, Look] = {
    "running": Look("▸", "#2f74d0", "#5192ea"),
    "ready": Look("○", "#2f74d0", "#5192ea"),
    "blocked": Look("·", "#5d6878", "#98a3b3"),
    "closed": Look("✓", "#2f9e6e", "#3fae7d"),
    "done": Look("✓", "#2f9e6e", "#3fae7d"),
    "owned": Look("▸", "#8e4ec6", "#a974dd"),
    "held": Look("!", "#b7791f", "#d69e2e"),
    "unsupported": Look("-", "#8a94a3", "#77818f"),
}


def lines(view: EpicView) -> Iterator[str]:
    """A line for each issue, behind those that it waits for."""
    return boxes.lines([_box(child) for child in view.children], LOOKS)


def picture(view: EpicView) -> str:
    """The whole file, in SVG. It has no script, and needs nothing else."""
    drawn = [_box(child) for child in view.children]
    return boxes.picture(drawn, LOOKS, f"EPIC #{view.number} of {view.repository}")


def _box(child: ChildView) -> Box:
    name = f"#{child.number}"
    note = "" if child.reason in ("ready", child.state) else child.reason
    if child.phase is not None:
        note = child.phase if not note else f"{note}, {child.phase}"
    after = [f"#{number}" for number in child.blocked_by]
    label = f"{name} {child.title}".strip()
    return Box(name, child.state, after, label, note, [child.reason])
