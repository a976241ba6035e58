"""What every store keeps of workflows, as checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from forge_actors.domain.events import Event
from forge_actors.domain.workflow_changes import (
    StepSaved,
    WorkflowAdded,
    WorkflowSaved,
    WorkflowsForgotten,
)

if TYPE_CHECKING:
    from forge_actors.actors.workflows_messages import WorkflowStore
    from forge_actors.domain.changes import Change
    from forge_actors.testing.inbox_contract import Open


def added(key: str) -> WorkflowAdded:
    event = Event("workflow_began", 1.0, data={"workflow": key})
    return WorkflowAdded(key, "release", "running", b"[1]", b"1", None, event)


async def check_a_workflow_is_kept_with_its_steps_in_order(open_: Open) -> None:
    async with open_() as store:
        changes: list[Change] = [
            added("1a"),
            added("1ab"),
            StepSaved("1a", "second", 1, "waiting", b"s1"),
            StepSaved("1a", "first", 0, "waiting", b"s0"),
            StepSaved("1ab", "other", 0, "waiting", b"o"),
            StepSaved("1a", "second", 1, "waiting", b"s2"),
            WorkflowSaved("1a", "paused", b"2", Event("workflow_paused", 2.0)),
        ]
        await store.save(changes).wait()
    async with open_() as store:
        kept = cast("WorkflowStore", store)
        assert kept.workflow("1a") == ((b"[1]", b"2"), [b"s0", b"s2"])
        assert kept.workflow("1ab") == ((b"[1]", b"1"), [b"o"])
        assert kept.workflow("1") is None
        assert kept.active_workflows() == ["1a", "1ab"]


async def check_the_oldest_that_have_ended_are_forgotten(open_: Open) -> None:
    async with open_() as store:
        for key in ("1a", "1b", "1c", "1d"):
            await store.save(
                [added(key), StepSaved(key, "s", 0, "waiting", b"s")]
            ).wait()
        ended = [WorkflowSaved(key, "failed", b"e") for key in ("1a", "1c", "1d")]
        await store.save([*ended, WorkflowsForgotten(1)]).wait()
        kept = cast("WorkflowStore", store)
        assert kept.active_workflows() == ["1b"]
        assert [key for key in ("1a", "1b", "1c", "1d") if kept.workflow(key)] == [
            "1b",
            "1d",
        ]
        assert kept.workflow("1d") == ((b"[1]", b"e"), [b"s"])


CHECKS = (
    check_a_workflow_is_kept_with_its_steps_in_order,
    check_the_oldest_that_have_ended_are_forgotten,
)
