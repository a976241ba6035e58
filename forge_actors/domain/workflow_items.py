"""What the inbox has of workflows that ended so that a person has to look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.inbox import Item
from forge_actors.domain.redaction import redact
from forge_actors.domain.workflow_records import UnreadableWorkflow, header_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: The state of these.
STUCK = "human_attention_required"


def stuck_items(
    rows: Iterable[tuple[str, bytes]], moment: Callable[[float], str | None]
) -> list[Item]:
    """Those of the ids and the bodies of such workflows. It is another one each time a
    workflow ends so: it has more steps by then."""
    found = []
    for workflow, body in rows:
        try:
            header = header_of(body)
        except UnreadableWorkflow:
            continue  # `workflow list` tells of it
        item = f"workflow:{workflow}:{sum(header.counts.values())}"
        evidence = {"workflow": workflow, "kind": header.kind}
        why = redact(header.why or "its outcome is not known")
        found.append(
            Item(
                id=item,
                kind="workflow",
                says=f"workflow {header.name} ended, and a person has to look: {why}",
                since=None if header.ended is None else moment(header.ended),
                repo=None,
                job=None,
                evidence=evidence,
                actions=[
                    f"forge-actors workflow show {workflow}",
                    f"forge-actors workflow retry {workflow}",
                    f"forge-actors inbox dismiss {item}",
                ],
            )
        )
    return found
