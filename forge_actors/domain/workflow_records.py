"""Workflows as they are stored, and what the history says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from forge_actors.domain.errors import ForgeError
from forge_actors.domain.events import Event
from forge_actors.domain.workflow_changes import StepSaved, WorkflowAdded, WorkflowSaved
from forge_actors.domain.workflow_definitions import Definition
from forge_actors.domain.workflow_steps import Step, Workflow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.domain.workflow_steps import StepState

_workflow = msgspec.json.Decoder(Workflow)
_definition = msgspec.json.Decoder(Definition)
_step = msgspec.json.Decoder(Step)
#: What is told of a step when it has come into a state.
_TOLD: dict[StepState, str] = {
    "asking": "workflow_asks",
    "skipped": "workflow_step_left_out",
    "failed": "workflow_step_failed",
}


class UnreadableWorkflow(ForgeError):
    """What is stored of a workflow cannot be used."""

    code = "WORKFLOW_UNREADABLE"


def loaded(
    row: tuple[bytes, bytes], steps: Iterable[bytes]
) -> tuple[Workflow, Definition, list[Step]]:
    """A workflow as it was saved: itself, what it is to do, and where its steps are.

    Raises:
        UnreadableWorkflow: it cannot be used.
    """
    definition, body = row
    header = header_of(body)
    try:
        return (
            header,
            _definition.decode(definition),
            [_step.decode(step) for step in steps],
        )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableWorkflow(f"what is stored of it: {error}") from None


def header_of(body: bytes) -> Workflow:
    """A workflow without the rest.

    Raises:
        UnreadableWorkflow: it cannot be used.
    """
    try:
        return _workflow.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableWorkflow(f"what is stored of it: {error}") from None


def added(
    workflow: Workflow, definition: Definition, request: str | None, now: float
) -> WorkflowAdded:
    event = workflow_event("workflow_began", workflow, now, steps=len(definition.steps))
    return WorkflowAdded(
        *(workflow.id, workflow.name, workflow.state),
        *(msgspec.json.encode(definition), msgspec.json.encode(workflow)),
        *(request, event),
    )


def unreadable(workflow: str, why: str) -> Workflow:
    """What is shown of a workflow of which nothing can be read."""
    return Workflow(workflow, workflow, "unknown", "", 0.0, "quarantined", why, 0.0)


def saved(
    workflow: Workflow, event: Event | None = None, body: bytes | None = None
) -> WorkflowSaved:
    """The change to what it is now; `body` is left as it is where it is given."""
    body = msgspec.json.encode(workflow) if body is None else body
    return WorkflowSaved(workflow.id, workflow.state, body, event)


def step_saved(workflow: Workflow, step: Step, now: float) -> StepSaved:
    event, kind = None, _TOLD.get(step.state)
    if kind is not None:
        why = {"reason": step.why} if step.why else {}
        event = workflow_event(kind, workflow, now, step=step.name, **why)
    body = msgspec.json.encode(step)
    return StepSaved(workflow.id, step.name, step.number, step.state, body, event)


def workflow_event(kind: str, workflow: Workflow, now: float, **data: object) -> Event:
    """Something became of a workflow, or of a step of it."""
    about = {"workflow": workflow.id, "name": workflow.name, **data}
    return Event(kind, now, data=about)
