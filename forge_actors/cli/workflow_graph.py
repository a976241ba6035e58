"""The graph of a workflow; what draws it is loaded only where it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.domain.picture import graph
from forge_actors.domain.requests import convert
from forge_actors.domain.workflow_views import WorkflowView

if TYPE_CHECKING:
    from collections.abc import Iterator


def lines(view: dict[str, Any]) -> Iterator[str]:
    return graph.lines(convert(view, WorkflowView))


def picture(view: dict[str, Any]) -> str:
    return graph.picture(convert(view, WorkflowView))
