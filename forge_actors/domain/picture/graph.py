"""The steps of a workflow as a graph: lines of text, and a picture in one file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.errors import Refused
from forge_actors.domain.picture import boxes
from forge_actors.domain.picture.boxes import Box, Look

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.workflow_views import StepView, WorkflowView

#: Steps that are drawn.
MAX_DRAWN = 2000

LOOKS: dict[str, Look] = {
    "succeeded": Look("✓", "#2f9e6e", "#3fae7d"),
    "failed": Look("✕", "#cf3f3a", "#e0605a"),
    "running": Look("▸", "#2f74d0", "#5192ea"),
    "asking": Look("?", "#8e4ec6", "#a974dd"),
    "skipped": Look("-", "#8a94a3", "#77818f"),
    "cancelled": Look("⊘", "#8a94a3", "#77818f"),
    "waiting": Look("·", "#5d6878", "#98a3b3"),
}


def lines(view: WorkflowView) -> Iterator[str]:
    """A line for each step, behind those that it runs after, and as far to the right
    as the longest way to it."""
    return boxes.lines([_box(step) for step in view.steps], LOOKS)


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
    drawn = [_box(step) for step in view.steps]
    return boxes.picture(drawn, LOOKS, f"{view.name}: {view.state}")


def _box(step: StepView) -> Box:
    why = step.gate if step.state == "asking" else step.why
    told = [text for text in (step.gate, step.why) if text]
    told += [f"job {step.job}"] if step.job else []
    return Box(step.name, step.state, step.after, note=why or "", told=told)
