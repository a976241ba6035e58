"""What workflows need a person for is in the inbox, with a service and without."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import apsw
from msgspec import to_builtins

from forge_actors.client import offline_inbox
from forge_actors.domain.requests import convert
from forge_actors.domain.workflow_views import WorkflowRequest
from forge_actors.runtime.homes import STORE_FILE
from tests.runtime.control_kit import controlled
from tests.runtime.kit import running

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_gate_is_in_the_inbox_until_it_is_answered(tmp_path: Path) -> None:
    steps = [{"name": "a", "gate": "Go on?"}, {"name": "b", "gate": "And now?"}]
    request = convert({"name": "w", "steps": steps}, WorkflowRequest)
    home = str(tmp_path / "home")
    async with controlled(tmp_path) as case:
        control = case.control
        made = await control.run_workflow(request)
        await control.answer_workflow("w", "a", yes=True)
        found = await control.inbox()
        [item] = found.items
        assert (item.kind, item.evidence["step"]) == ("workflow", "b")
        assert item.says == "step b of workflow w asks: And now?"
        assert f"forge-actors workflow deny {made.id} b" in item.actions
        assert item.since is not None
        await control.dismiss(item.id)
        assert (await control.inbox()).dismissed == 1
        served = to_builtins(await control.inbox())
    assert offline_inbox.items(home) == served


async def test_one_that_was_set_aside_is_in_the_inbox_until_it_is_tried_again(
    tmp_path: Path,
) -> None:
    steps = [{"name": "a", "gate": "Go on?"}]
    request = convert({"name": "w", "steps": steps}, WorkflowRequest)
    home = tmp_path / "home"
    async with running(home) as runtime:
        made = await runtime.control.run_workflow(request)
    with closing(apsw.Connection(str(home / STORE_FILE))) as store:
        store.execute("UPDATE workflow SET definition = ?", (b"{",))
    async with running(home) as runtime:
        await runtime.control.wait_workflow("w")
        [item] = (await runtime.control.inbox()).items
        assert item.says.startswith(
            "workflow w needs somebody: it is set aside: Unread"
        )
        assert item.evidence == {"workflow": made.id}
        [listed] = await runtime.control.workflows()
        shown = await runtime.control.workflow("w")
        assert (listed.state, shown.state) == ("quarantined", "quarantined")
        served = to_builtins(await runtime.control.inbox())
    assert offline_inbox.items(str(home)) == served
