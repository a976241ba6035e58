"""Control, the part that is about workflows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.workflow_views import WorkflowRequest, WorkflowView


class Workflows(Protocol):
    """A workflow is named by its id, the beginning of it that only it has, or the name
    that it shares with older ones. Every method that names one may raise NotFound."""

    async def run_workflow(
        self, request: WorkflowRequest, *, dry_run: bool = False, origin: str = "cli"
    ) -> WorkflowView:
        """Begin one, unless its request began one already; `dry_run` only checks it.
        `origin` is who begins it.

        Raises:
            InvalidInput: naming the field that is wrong; nothing has begun.
            Refused: too many have not ended.
        """

    async def workflows(
        self, state: str | None = None, *, before: str | None = None, limit: int = 50
    ) -> list[WorkflowView]:
        """The newest first, without their steps; those older than `before`."""

    async def workflow(self, name: str) -> WorkflowView:
        """One with its steps."""

    async def pause_workflow(self, name: str) -> WorkflowView:
        """Let nothing new begin; its jobs go on."""

    async def resume_workflow(self, name: str) -> WorkflowView: ...

    async def cancel_workflow(self, name: str) -> WorkflowView:
        """Let nothing new begin, and ask its jobs to end."""

    async def retry_workflow(
        self, name: str, steps: Sequence[str] = ()
    ) -> WorkflowView:
        """Begin steps that failed anew, or all of them, and what was left out.

        Raises:
            Refused: it has not ended, or a step did not fail.
        """

    async def answer_workflow(self, name: str, step: str, *, yes: bool) -> WorkflowView:
        """Say yes or no to what a step asks.

        Raises:
            Refused: it asks nothing.
        """

    async def wait_workflow(self, name: str) -> WorkflowView:
        """Return when it has ended, with its steps."""
