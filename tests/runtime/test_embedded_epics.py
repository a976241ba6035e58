"""EPICs in a program that runs everything itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import structs

import forge_actors
from forge_actors.domain.epic.runs import EpicRequest
from forge_actors.runtime.epic_settings import (
    EpicSettings,
    PhaseSettings,
    PhaseTables,
)
from tests.runtime.kit import make_repository

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors import EventView, Runtime

PLAN = """\
title = "The importer"
[[issue]]
number = 1
title = "Parse"
[[issue]]
number = 2
title = "Load"
blocked_by = [1]
"""
WORK = EpicSettings(phases=PhaseTables(implement=PhaseSettings(argv=("true",))))


async def told(runtime: Runtime, last: str) -> list[EventView]:
    """The events of EPICs, up to the first of a kind."""
    found = []
    async for event in runtime.events(after=0):
        if event.kind.startswith("epic_"):
            found.append(event)
        if event.kind == last:
            break
    return found


async def test_a_program_has_an_epic_worked_through(tmp_path: Path) -> None:
    home, app = tmp_path / "home", make_repository(tmp_path / "app")
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    settings = forge_actors.Settings(epic=WORK)
    async with forge_actors.open_runtime(home, settings) as runtime:
        for wrong in ("plan.toml", tmp_path / "none.toml", "https://x.test/1"):
            with pytest.raises(forge_actors.InvalidInput):
                await runtime.run_epic(wrong, app)
        run = await runtime.run_epic(plan, app, request_id="once")
        again = await runtime.run_epic(plan, app, request_id="once")
        assert again.id == run.id
        ended = await run.wait()
        assert (ended.state, ended.reason) == ("ended", "nothing-admissible")
        assert (ended.origin, ended.repo, ended.epic) == ("embedded", "app", str(plan))
        assert ended.view is not None
        first, second = ended.view.children
        assert (first.title, first.phase, first.closed) == (
            *("Parse", "ready_for_merge", "settled"),
        )
        assert (second.state, second.blocked_by, second.job) == ("blocked", (1,), None)
        [job] = await runtime.jobs(work=[run.id])
        assert (first.job, job.state, job.name) == (job.id, "succeeded", "issue #1")
        events = await told(runtime, "epic_ended")
        assert {event.data["epic"] for event in events} == {run.id}
        kinds = [event.kind for event in events]
        assert [kinds[0], *kinds[-1:]] == ["epic_began", "epic_ended"]
        assert kinds.index("epic_issue_started") < kinds.index("epic_issue_ended")
        with pytest.raises(forge_actors.Refused, match="has ended"):
            await run.stop()
        [listed] = await runtime.control.epics()
        assert listed == structs.replace(
            ended, view=structs.replace(ended.view, children=())
        )
        assert await runtime.control.epics(active=True) == []
        assert await runtime.control.epic(run.id[:12]) == ended
        with pytest.raises(forge_actors.NotFound):
            await runtime.epic(run.id[:3])
    async with forge_actors.open_runtime(home) as runtime:
        assert await (await runtime.epic(run.id)).show() == ended


@pytest.mark.parametrize("origin", ["mcp", "job:1abc"])
async def test_an_agent_decides_nothing_that_is_for_a_person(
    tmp_path: Path, origin: str
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    pushes = structs.replace(WORK, effects=("push", "pull_request"))
    settings = forge_actors.Settings(epic=pushes)
    async with forge_actors.open_runtime(tmp_path / "home", settings) as runtime:
        repo = await runtime.add_repository(make_repository(tmp_path / "app"))
        request = EpicRequest(str(plan), repo.name)
        with pytest.raises(forge_actors.Refused, match="push and open pull requests"):
            await runtime.control.run_epic(request, origin=origin)
        for field in ("resume", "force", "accept_config_change"):
            wanted = structs.replace(request, **{field: True})
            with pytest.raises(forge_actors.Refused, match="a person can"):
                await runtime.control.run_epic(wanted, origin=origin)
        assert await runtime.control.epics() == []
