"""Schedules keep to their repository, whatever becomes of its name and its place."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.requests import JobRequest
from forge_actors.domain.schedule_records import encoded, loaded
from forge_actors.domain.schedule_views import ScheduleRequest
from forge_actors.domain.schedules import Definition, Progress, Schedule
from forge_actors.domain.triggers import Manual
from tests.runtime.kit import make_repository, running

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.jobs import JobView
    from forge_actors.runtime.runtime import Runtime


async def ran(runtime: Runtime, name: str) -> JobView:
    """The job that a schedule makes now, once it has ended."""
    events = runtime.events()
    told = await runtime.control.run_schedule(name)
    async for event in events:
        if event.data.get("occurrence") == told.id:
            assert event.job is not None
            return (await runtime.control.wait([event.job]))[0]
    raise AssertionError("the runtime has ended")


async def test_one_goes_with_its_repository_and_never_to_another_of_its_name(
    tmp_path: Path,
) -> None:
    old, new = make_repository(tmp_path / "a" / "app"), tmp_path / "b" / "app"
    new.parent.mkdir()
    (old / "sub").mkdir()
    async with running(None) as runtime:
        control = runtime.control
        await control.add_repository(str(old))
        job = {"argv": ["true"], "cwd": str(old / "sub")}
        request = ScheduleRequest(name="s", repo=str(old), job=job, manual=True)
        view = await control.add_schedule(request)
        assert (view.repo, view.definition["repo"]) == ("app", "app")
        assert view.definition["job"]["cwd"] == "sub"
        old.rename(new)
        await control.relocate_repository("app", str(new))
        done = await ran(runtime, "s")
        assert (done.state, done.cwd) == ("succeeded", str(new / "sub"))
        # Another one in its place has its name, and none of its schedules.
        shutil.rmtree(new)
        make_repository(new)
        await control.add_repository(str(new))
        assert [repo.name for repo in await control.repositories()] == ["app"]
        assert await control.schedules() == []


def test_one_that_was_stored_by_name_is_one_of_its_repository() -> None:
    definition = Definition("s", "id-1", Manual(), JobRequest("app", ["true"]))
    old = Schedule("sch-1", 1, definition, Progress(0.0))
    read, _ = loaded("sch-1", "s", encoded(old))
    assert read.definition.request.repo == "id-1"
    linked = structs.replace(definition.request, repo="/srv/app-next")
    definition = structs.replace(definition, request=linked)
    read, _ = loaded("sch-1", "s", encoded(structs.replace(old, definition=definition)))
    assert read.definition == definition
