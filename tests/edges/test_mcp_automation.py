"""What agents can do with what begins jobs by itself, and with templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.controller_views import ControllerRequest
from forge_actors.domain.epic.views import ChildView, EpicView
from forge_actors.domain.schedule_views import ScheduleRequest
from forge_actors.domain.templates import Parameter, TemplateView
from forge_actors.domain.workflow_views import StepRequest, WorkflowRequest
from tests.edges.mcp_kit import called, leaves_generators, refused, serving

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = leaves_generators


async def test_workflows_are_looked_at_and_steered(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, served.client() as client:
        steps = [StepRequest(name=name) for name in ("a", "b")]
        await served.control.run_workflow(WorkflowRequest(name="w", steps=steps))
        listed = await called(client, "workflows")
        assert [row["name"] for row in listed["workflows"]] == ["w"]
        told = await called(client, "workflows", name="w", action="pause")
        assert told["workflow"]["state"] == "paused"
        assert [step["name"] for step in told["steps"]] == ["a", "b"]
        for action, state in (
            ("resume", "running"),
            ("cancel", "cancelled"),
            ("retry", "running"),
        ):
            told = await called(client, "workflows", name="w", action=action)
            assert told["workflow"]["state"] == state
        error = await refused(client, "workflows", action="cancel")
        assert "which workflow is to cancel" in str(error)


async def test_schedules_are_looked_at_and_run(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, served.client() as client:
        control = served.control
        job = {"argv": ["make"], "env": {"KEY": "x-secret-x"}}
        await control.add_schedule(ScheduleRequest("nightly", "app", job, every="1d"))
        listed = await called(client, "schedules")
        assert ([s["name"] for s in listed["schedules"]], listed["total"]) == (
            ["nightly"],
            1,
        )
        await called(client, "schedules", name="nightly", action="run", request_id="r")
        assert control.ran == [("nightly", "r")]
        paused = await called(client, "schedules", name="nightly", action="pause")
        assert "KEY" in str(paused)
        assert "x-secret-x" not in str(paused)
        assert paused["schedule"]["state"] == "paused"
        shown = await called(client, "schedules", name="nightly")
        assert shown["occurrences"] == []


async def test_a_template_is_found_and_submitted(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, served.client() as client:
        job = {"argv": ["make", "${part}"], "env": {"KEY": "x-secret-x"}}
        part = {"part": Parameter(default="all")}
        view = TemplateView("test", "app", "", part, job, [])
        hidden = structs.replace(view, hidden=True)
        served.control.kept_templates = [view, hidden]
        listed = await called(client, "templates", repo="app")
        assert [each["name"] for each in listed["templates"]] == ["test"]
        assert "x-secret-x" not in str(listed)
        made = await called(
            client, "submit_template", template="test", repo="app", values={"part": "x"}
        )
        assert made["id"] == "job1"
        [(name, wanted)] = served.control.by_template
        assert (name, wanted.values, wanted.origin) == ("test", {"part": "x"}, "mcp")


async def test_a_controller_is_looked_at_and_its_turn_ended(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, served.client() as client:
        control = served.control
        await control.add_controller(ControllerRequest("fixer", "Go on.", job="1abc"))
        listed = await called(client, "controllers")
        assert ([row["name"] for row in listed["controllers"]], listed["total"]) == (
            ["fixer"],
            1,
        )
        words = {"disposition": "wait", "note": "the tests run"}
        told = await client.call_tool("end_turn", words)
        assert told.is_error
        await called(client, "end_turn", controller="fixer", **words)
        shown = await called(client, "controllers", name="fixer")
        turn = shown["controller"]["turn"]
        assert (turn["told"], turn["note"]) == ("wait", "the tests run")
        assert shown["wakes"] == []


async def test_epics_are_begun_looked_at_and_stopped(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, served.client() as client:
        control, url = served.control, "https://github.com/octo/demo/issues/7"
        begun = await called(
            client, "epics", action="run", epic=url, repo="demo", max_parallel=2
        )
        run = begun["epic"]["id"]
        [wanted] = control.epic_requests
        assert (wanted.epic, wanted.repo, wanted.max_parallel) == (url, "demo", 2)
        assert control.kept_epics[run].origin == "mcp"
        children = (
            ChildView(8, "x\x1b[31m\u202e", "closed", "closed"),
            ChildView(9, "two", "running", "running", job="1job"),
        )
        counts = {"closed": 1, "running": 1}
        view = EpicView("octo/demo", 7, "The whole", "running", children, counts)
        control.kept_epics[run] = structs.replace(control.kept_epics[run], view=view)
        [row] = (await called(client, "epics"))["epics"]
        assert (row["id"], row["counts"], row["title"]) == (run, counts, "The whole")
        shown = await called(client, "epics", action="show", run=run)
        assert [(i["number"], i["job"]) for i in shown["issues"]] == [
            (9, "1job"),
            (8, None),
        ]
        assert "\x1b" not in str(shown)
        assert "\u202e" not in str(shown)
        await called(client, "epics", action="stop", run=run)
        assert control.epic_stops == [(run, "drain")]
        for words, missing in (
            ({"action": "stop"}, "which run is to stop"),
            ({"action": "run", "repo": "demo"}, "which EPIC"),
            ({"action": "run", "epic": url}, "give the name of a repository"),
        ):
            assert missing in str(await refused(client, "epics", **words))
