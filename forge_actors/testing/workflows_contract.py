"""What every store keeps of workflows, as checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec import structs

from forge_actors.domain.events import Event
from forge_actors.domain.workflow_changes import (
    StepSaved,
    WorkflowAdded,
    WorkflowSaved,
    WorkflowsForgotten,
)
from forge_actors.domain.workflow_records import saved
from forge_actors.domain.workflow_steps import Workflow

if TYPE_CHECKING:
    from forge_actors.actors.workflows_messages import WorkflowStore
    from forge_actors.domain.changes import Change
    from forge_actors.testing.inbox_contract import Open


def added(key: str) -> WorkflowAdded:
    event = Event("workflow_began", 1.0, data={"workflow": key})
    return WorkflowAdded(key, "release", "running", b"[1]", b"1", None, event)


def over(key: str, ended: float) -> WorkflowSaved:
    header = Workflow(key, "release", "portfolio", "0", 1.0, "failed", ended=ended)
    return saved(header)


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
        ended = [over("1a", 9.0), over("1c", 8.0), over("1d", 8.0)]
        odd = WorkflowSaved("1e", "quarantined", b"[]")
        await store.save([added("1e"), odd, *ended, WorkflowsForgotten(2)]).wait()
        kept = cast("WorkflowStore", store)
        assert kept.active_workflows() == ["1b"]
        every = ("1a", "1b", "1c", "1d", "1e")
        # The one that began first has ended last; nobody can say when `1e` has.
        assert [key for key in every if kept.workflow(key)] == ["1a", "1b", "1e"]
        assert kept.workflow("1a") == ((b"[1]", ended[0].body), [b"s"])


async def check_a_request_is_known_once_it_is_saved(open_: Open) -> None:
    async with open_() as store:
        kept = cast("WorkflowStore", store)
        assert kept.workflow_of_request("once") is None
        move = store.save([structs.replace(added("1a"), request="once")])
        assert kept.workflow_of_request("once") == "1a"
        await move.wait()
        await store.save([over("1a", 9.0), WorkflowsForgotten(0)]).wait()
        assert kept.workflow_of_request("once") is None


CHECKS = (
    check_a_workflow_is_kept_with_its_steps_in_order,
    check_the_oldest_that_have_ended_are_forgotten,
    check_a_request_is_known_once_it_is_saved,
)
