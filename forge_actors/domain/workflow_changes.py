"""Changes of workflows and of their steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from forge_actors.domain.events import Event
    from forge_actors.domain.workflow_steps import StepState, WorkflowState


class WorkflowAdded(Struct, frozen=True):
    """A workflow was begun; its definition is saved once, and never changed."""

    workflow: str
    name: str
    state: WorkflowState
    definition: bytes
    body: bytes
    #: The request that began it: a second one begins nothing.
    request: str | None
    event: Event


class WorkflowSaved(Struct, frozen=True):
    """All that is known of a workflow now but its definition and its steps."""

    workflow: str
    state: WorkflowState
    body: bytes
    event: Event | None = None


class StepSaved(Struct, frozen=True):
    """All that is known of a step now; the first one adds it."""

    workflow: str
    step: str
    number: int
    state: StepState
    body: bytes
    event: Event | None = None


class WorkflowsForgotten(Struct, frozen=True):
    """Workflows that have ended go, but for the newest ones."""

    kept: int
    event: None = None
