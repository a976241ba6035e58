"""The routes of the runs of EPICs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from forge_actors.domain.epic.views import ChildView, EpicView
from forge_actors.edges.gateway.handling import handler
from forge_actors.edges.gateway.messages import Request, Response
from forge_actors.testing.control import FakeControl
from tests.edges.routes_kit import open_api

if TYPE_CHECKING:
    from pathlib import Path

EPIC = {"epic": "https://github.com/octo/demo/issues/7", "repo": "demo"}


def seen() -> EpicView:
    children = (
        ChildView(8, "First", "running", "running", job="1job"),
        ChildView(9, "<script>", "blocked", "blocked:#8", blocked_by=(8,)),
    )
    counts = {"running": 1, "blocked": 1}
    return EpicView("octo/demo", 7, "The whole", "running", children, counts)


async def test_runs_are_begun_listed_shown_and_stopped(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        runs = [(await api("POST", "/epics", EPIC))[1]["id"] for _ in range(3)]
        status, run = await api("GET", f"/epics/{runs[0]}")
        assert (status, run["epic"], run["repo"]) == (200, EPIC["epic"], "demo")
        assert (run["state"], run["view"]) == ("running", None)
        status, answer = await api.raw("GET", f"/epics/{runs[0]}/graph.svg")
        assert (status, b"not read yet" in answer) == (404, True)
        kept = api.control.kept_epics
        kept[runs[0]] = structs.replace(kept[runs[0]], view=seen())
        kept[runs[2]] = structs.replace(kept[runs[2]], state="ended")
        _, page = await api("GET", "/epics?limit=2")
        assert [each["id"] for each in page["epics"]] == runs[:0:-1]
        assert page["next"] == runs[1]
        _, page = await api("GET", "/epics?active=1")
        assert [each["id"] for each in page["epics"]] == [runs[1], runs[0]]
        _, page = await api("GET", f"/epics?active=1&before={runs[1]}")
        [first] = page["epics"]
        assert (first["id"], page["next"]) == (runs[0], None)
        assert (first["view"]["counts"], first["view"]["children"]) == (
            {"running": 1, "blocked": 1},
            [],
        )
        _, run = await api("GET", f"/epics/{runs[0]}")
        assert [child["job"] for child in run["view"]["children"]] == ["1job", None]
        status, answer = await api.raw("GET", f"/epics/{runs[0]}/graph.svg?seen=2")
        assert (status, b"<script" in answer) == (200, False)
        for body, mode in (({}, "drain"), ({"mode": "now"}, "now")):
            await api("POST", f"/epics/{runs[0]}/stop", body)
            assert api.control.epic_stops[-1] == (runs[0], mode)
        assert (await api("POST", f"/epics/{runs[2]}/stop", {}))[0] == 409
        status, waited = await api("POST", f"/epics/{runs[2]}/wait", {"timeout": "1h"})
        assert (status, waited["timed_out"]) == (200, False)
        assert waited["epic"]["state"] == "ended"
        for method, path, body in (
            ("POST", "/epics", {**EPIC, "more": 1}),
            ("POST", "/epics", {"epic": "x"}),
            ("POST", f"/epics/{runs[0]}/stop", {"mode": "kill"}),
            ("GET", "/epics?limit=0", None),
        ):
            assert (await api(method, path, body))[0] == 400, path
        assert (await api("GET", "/epics/none"))[0] == 404


async def test_a_run_is_of_the_job_that_begins_it_and_has_an_etag() -> None:
    made = FakeControl()
    serve = handler(made)

    async def asked(method: str, *path: str, **headers: str) -> Response:
        body = msgspec.json.encode(EPIC) if method == "POST" else b""
        told = {name.replace("_", "-"): text for name, text in headers.items()}
        answer = await serve(Request(method, ("v1", "epics", *path), "", told, body))
        assert isinstance(answer, Response)
        return answer

    begun: Any = msgspec.json.decode((await asked("POST", forge_job="1abc")).body)
    assert begun["origin"] == "job:1abc"
    tag = (await asked("GET", begun["id"])).headers["etag"]
    assert (await asked("GET", begun["id"], if_none_match=tag)).status == 304
    kept = made.kept_epics[begun["id"]]
    made.kept_epics[begun["id"]] = structs.replace(kept, why="something else")
    assert (await asked("GET", begun["id"], if_none_match=tag)).status == 200
