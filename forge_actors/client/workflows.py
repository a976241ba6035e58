"""The part of the client that is about workflows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.client.schedules import ScheduleCalls
from forge_actors.domain.requests import convert
from forge_actors.domain.workflow_views import WorkflowView

if TYPE_CHECKING:
    from collections.abc import Sequence


class WorkflowCalls(ScheduleCalls):
    """A workflow is named by its id, the beginning of it, or its name."""

    async def run_workflow(
        self, /, *, dry_run: bool = False, **workflow: Any
    ) -> WorkflowView:
        """Begin one: what it is is as `WorkflowRequest`."""
        body = {"workflow": workflow, "dry_run": dry_run}
        answer = await self._call("POST", "workflows", body=body)
        return convert(answer, WorkflowView)

    async def workflows(
        self, state: str | None = None, *, before: str | None = None, limit: int = 50
    ) -> list[WorkflowView]:
        """The newest first, without their steps."""
        given = (("state", state), ("before", before), ("limit", limit))
        query = [(name, value) for name, value in given if value is not None]
        answer = await self._call("GET", "workflows", query=query)
        return convert(answer["workflows"], list[WorkflowView])

    async def workflow(self, name: str) -> WorkflowView:
        return convert(await self._call("GET", "workflows", name), WorkflowView)

    async def pause_workflow(self, name: str) -> WorkflowView:
        """Let nothing new begin; its jobs go on."""
        return await self._told(name, "pause")

    async def resume_workflow(self, name: str) -> WorkflowView:
        return await self._told(name, "resume")

    async def cancel_workflow(self, name: str) -> WorkflowView:
        """Let nothing new begin, and ask its jobs to end."""
        return await self._told(name, "cancel")

    async def retry_workflow(
        self, name: str, steps: Sequence[str] = ()
    ) -> WorkflowView:
        """Begin steps that failed anew, or all of them, and what was left out."""
        return await self._told(name, "retry", {"steps": list(steps)})

    async def answer_workflow(self, name: str, step: str, *, yes: bool) -> WorkflowView:
        """Say yes or no to what a step asks."""
        return await self._told(name, "answer", {"step": step, "yes": yes})

    async def wait_workflow(
        self, name: str, timeout: str | float | None = None
    ) -> WorkflowView:
        """Return when it has ended, or as it is after `timeout`."""
        path, body = ("workflows", name, "wait"), {"timeout": timeout}
        answer = await self._call("POST", *path, body=body)
        return convert(answer["workflow"], WorkflowView)

    async def _told(
        self, name: str, verb: str, body: dict[str, Any] | None = None
    ) -> WorkflowView:
        answer = await self._call("POST", "workflows", name, verb, body=body)
        return convert(answer, WorkflowView)
