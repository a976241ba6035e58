"""The tool that is about workflows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import to_builtins

from forge_actors.domain.errors import InvalidInput
from forge_actors.edges.gateway.mcp.answers import fitting

if TYPE_CHECKING:
    from forge_actors.domain.workflow_views import WorkflowView
    from forge_actors.edges.gateway.mcp import arguments
    from forge_actors.edges.gateway.mcp.answers import Json
    from forge_actors.edges.gateway.mcp.calls import Call

#: Workflows that one answer lists, and steps of one.
MAX_WORKFLOWS, MAX_STEPS = 50, 200
_ROW = ("id", "name", "kind", "state", "why", "made_at", "ended_at", "counts")
#: Steps in which there is something to see come first.
_FIRST = ("asking", "failed", "running")


async def workflows(call: Call, wanted: arguments.Workflows) -> Json:
    control, name = call.control, wanted.name
    if name is None:
        if wanted.action != "show":
            raise InvalidInput(
                "name", f"is missing: which workflow is to {wanted.action}"
            )
        views = await control.workflows(limit=MAX_WORKFLOWS)
        return {"workflows": fitting([_row(view) for view in views])}
    match wanted.action:
        case "pause":
            await control.pause_workflow(name)
        case "resume":
            await control.resume_workflow(name)
        case "cancel":
            await control.cancel_workflow(name)
        case "retry":
            await control.retry_workflow(name)
        case "show":
            pass
    view = await control.workflow(name)
    steps = sorted(view.steps, key=lambda step: step.state not in _FIRST)
    told = fitting([to_builtins(step) for step in steps[:MAX_STEPS]])
    return {"workflow": _row(view), "steps": told, "total": len(steps)}


def _row(view: WorkflowView) -> Json:
    return {field: to_builtins(getattr(view, field)) for field in _ROW}
