"""What workflows need a person for, as items of the inbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from forge_actors.domain.inbox import Item
from forge_actors.domain.redaction import bounded, redact
from forge_actors.domain.workflow_records import UnreadableWorkflow, header_of
from forge_actors.domain.workflow_steps import Step

if TYPE_CHECKING:
    from collections.abc import Callable

#: Characters of what a step asks, or of why a workflow needs somebody.
MAX_SAID = 500
_step = msgspec.json.Decoder(Step)


def asking_item(row: tuple[Any, ...], moment: Callable[[float], str | None]) -> Item:
    """The item of a step that asks: another one each time it does."""
    workflow, name, body = row
    step = _step.decode(body)
    since = "" if step.began is None else f":{step.began:.0f}"
    item = f"workflow:{workflow}:{step.name}{since}"
    words = f"{workflow} {step.name}"
    return Item(
        id=item,
        kind="workflow",
        says=f"step {step.name} of workflow {name} asks: {_said(step.why)}",
        since=None if step.began is None else moment(step.began),
        repo=None,
        job=None,
        evidence={"workflow": workflow, "step": step.name},
        actions=[
            f"forge-actors workflow show {workflow}",
            f"forge-actors workflow approve {words}",
            f"forge-actors workflow deny {words}",
        ],
    )


def needing_item(row: tuple[Any, ...], moment: Callable[[float], str | None]) -> Item:
    """The item of a workflow that stopped, or was set aside, until somebody looks."""
    workflow, name, body = row
    why, since = "nothing of it can be read", None
    item = f"workflow:{workflow}"
    try:
        header = header_of(body)
    except UnreadableWorkflow:
        pass
    else:
        why, ended = header.why or header.state, header.ended
        if ended is not None:
            item, since = f"{item}:{ended:.0f}", moment(ended)
    return Item(
        id=item,
        kind="workflow",
        says=f"workflow {name} needs somebody: {_said(why)}",
        since=since,
        repo=None,
        job=None,
        evidence={"workflow": workflow},
        actions=[
            f"forge-actors workflow show {workflow}",
            f"forge-actors workflow retry {workflow}",
            f"forge-actors inbox dismiss {item}",
        ],
    )


def _said(text: str | None) -> str:
    return bounded(redact(text or ""), MAX_SAID)
