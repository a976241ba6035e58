"""The half of the store in memory that the workflows need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.workflow_steps import ACTIVE

if TYPE_CHECKING:
    from forge_actors.testing.rows import Rows


class WorkflowsInMemory:
    """The port `WorkflowStore`, but for what every store has."""

    _pending: Rows

    def workflow(self, workflow: str) -> tuple[tuple[bytes, bytes], list[bytes]] | None:
        row = self._pending.workflows.get(workflow)
        if row is None:
            return None
        steps = sorted(
            saved
            for (of, _), saved in self._pending.workflow_steps.items()
            if of == workflow
        )
        return row[1:], [body for _, body in steps]

    def workflow_of_request(self, request: str) -> str | None:
        return self._pending.workflow_requests.get(request)

    def active_workflows(self) -> list[str]:
        rows = self._pending.workflows
        return sorted(key for key, row in rows.items() if row[0] in ACTIVE)
