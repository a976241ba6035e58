"""What agents can do with workflows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.workflow_views import StepRequest, WorkflowRequest
from tests.edges.mcp_kit import called, refused, serving

if TYPE_CHECKING:
    from pathlib import Path


async def test_workflows_are_looked_at_and_steered(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, served.client() as client:
        steps = [StepRequest(name=name) for name in ("a", "b")]
        await served.control.run_workflow(WorkflowRequest(name="w", steps=steps))
        listed = await called(client, "workflows")
        assert [row["name"] for row in listed["workflows"]] == ["w"]
        told = await called(client, "workflows", name="w", action="pause")
        assert told["workflow"]["state"] == "paused"
        assert [step["name"] for step in told["steps"]] == ["a", "b"]
        for action, state in (
            ("resume", "running"),
            ("cancel", "cancelled"),
            ("retry", "running"),
        ):
            told = await called(client, "workflows", name="w", action=action)
            assert told["workflow"]["state"] == state
        error = await refused(client, "workflows", action="cancel")
        assert "which workflow is to cancel" in str(error)
