"""The part of the fake `Control` that is about workflows: kept, and never moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.errors import NotFound, Refused
from forge_actors.domain.workflow_views import StepView, WorkflowView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.workflow_steps import WorkflowState
    from forge_actors.domain.workflow_views import WorkflowRequest


class FakeWorkflows:
    """Workflows by name in `kept_workflows`."""

    def __init__(self) -> None:
        self.kept_workflows: dict[str, WorkflowView] = {}

    async def run_workflow(
        self, request: WorkflowRequest, *, dry_run: bool = False, origin: str = "cli"
    ) -> WorkflowView:
        steps = tuple(
            StepView(
                name=step.name,
                state="asking" if step.gate else "waiting",
                after=tuple(step.after),
                job=None,
                tries=0,
                why=None,
                gate=step.gate,
                outputs={},
                began_at=None,
                ended_at=None,
            )
            for step in request.steps
        )
        view = WorkflowView(
            id=f"1{request.name}",
            name=request.name,
            kind=request.kind,
            state="running",
            why=None,
            digest="0" * 64,
            origin=origin,
            made_at="2026-01-02T03:04:05.000Z",
            ended_at=None,
            counts={"waiting": len(steps)},
            source=request.source,
            steps=steps,
        )
        if not dry_run:
            self.kept_workflows[request.name] = view
        return view

    async def workflows(
        self, state: str | None = None, *, before: str | None = None, limit: int = 50
    ) -> list[WorkflowView]:
        found = sorted(
            self.kept_workflows.values(), key=lambda view: view.id, reverse=True
        )
        return [
            structs.replace(view, steps=())
            for view in found
            if state in (None, view.state) and (before is None or view.id < before)
        ][:limit]

    async def workflow(self, name: str) -> WorkflowView:
        for view in self.kept_workflows.values():
            if name in (view.name, view.id):
                return view
        raise NotFound(f"there is no workflow {name!r}")

    async def pause_workflow(self, name: str) -> WorkflowView:
        return await self._become(name, "paused")

    async def resume_workflow(self, name: str) -> WorkflowView:
        return await self._become(name, "running")

    async def cancel_workflow(self, name: str) -> WorkflowView:
        return await self._become(name, "cancelled")

    async def retry_workflow(
        self, name: str, steps: Sequence[str] = ()
    ) -> WorkflowView:
        known = await self.workflow(name)
        for step in steps:
            if step not in [each.name for each in known.steps]:
                raise NotFound(f"there is no step {step!r}")
        return await self._become(name, "running")

    async def answer_workflow(self, name: str, step: str, *, yes: bool) -> WorkflowView:
        known = await self.workflow(name)
        asking = [each.name for each in known.steps if each.state == "asking"]
        if step not in asking:
            raise Refused(f"step {step!r} asks nothing")
        return await self._become(name, "running" if yes else "failed")

    async def wait_workflow(self, name: str) -> WorkflowView:
        return await self.workflow(name)

    async def _become(self, name: str, state: WorkflowState) -> WorkflowView:
        known = await self.workflow(name)
        view = structs.replace(known, state=state)
        self.kept_workflows[known.name] = view
        return view
