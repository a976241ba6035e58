"""Workflows as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.domain.workflow_changes import (
    StepSaved,
    WorkflowAdded,
    WorkflowSaved,
    WorkflowsForgotten,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import apsw

Queries = dict[str, str]


def add_workflow(db: apsw.Connection, sql: Queries, change: WorkflowAdded) -> None:
    row = (
        *(change.workflow, change.name, change.state),
        *(change.request, change.definition, change.body),
    )
    db.execute(sql["add_workflow"], row)


def save_workflow(db: apsw.Connection, sql: Queries, change: WorkflowSaved) -> None:
    db.execute(sql["save_workflow"], (change.workflow, change.state, change.body))


def save_step(db: apsw.Connection, sql: Queries, change: StepSaved) -> None:
    key = f"{change.workflow}/{change.step}"
    db.execute(sql["save_step"], (key, change.number, change.state, change.body))


def forget_workflows(
    db: apsw.Connection, sql: Queries, change: WorkflowsForgotten
) -> None:
    for (old,) in db.execute(sql["old_workflows"], (change.kept,)).fetchall():
        db.execute(sql["forget_workflow"], (old,))
        db.execute(sql["forget_steps"], (old,))


WRITERS: dict[type, Callable[[apsw.Connection, Queries, Any], None]] = {
    WorkflowAdded: add_workflow,
    WorkflowSaved: save_workflow,
    StepSaved: save_step,
    WorkflowsForgotten: forget_workflows,
}
