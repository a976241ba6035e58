"""The routes that hold, pause, resume and edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from tests.edges.routes_kit import open_api

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_job_is_held_paused_and_let_go(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        for verb, kind in (
            ("hold", "pause"),
            ("unhold", "token"),
            ("pause", "pause"),
            ("resume", "token"),
        ):
            status, view = await api("POST", f"/jobs/{job}/{verb}", {})
            assert (status, view["waiting"]["kind"], view["paused"]) == (
                200,
                kind,
                False,
            )
        runs = structs.replace(api.control.views[job], state="running", waiting=None)
        api.control.views[job] = runs
        status, view = await api("POST", f"/jobs/{job}/pause", {})
        assert (status, view["state"], view["paused"]) == (200, "running", True)
        status, message = await api.error("POST", f"/jobs/{job}/hold", {})
        assert (status, "hold is for jobs that wait" in message) == (409, True)
        api.control.end(job)
        for verb in ("hold", "unhold", "pause", "resume"):
            status, message = await api.error("POST", f"/jobs/{job}/{verb}", {})
            assert (status, "has ended" in message) == (409, True)
            status, message = await api.error("POST", f"/jobs/{job}/{verb}", {"a": 1})
            assert (status, message) == (400, "a: is not a known field")


async def test_many_jobs_are_steered_by_one_request_or_none_is(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        jobs = [await api.submit() for _ in range(3)]
        status, answer = await api("POST", "/bulk/hold", {"jobs": jobs})
        assert status == 200
        assert [view["id"] for view in answer["jobs"]] == jobs
        assert {view["waiting"]["kind"] for view in answer["jobs"]} == {"pause"}
        api.control.end(jobs[2])
        status, message = await api.error("POST", "/bulk/unhold", {"jobs": jobs})
        assert (status, "has ended" in message) == (409, True)
        first = api.control.views[jobs[0]].waiting
        assert first is not None
        assert first["kind"] == "pause"
        body = {"jobs": jobs, "grace": "1s"}
        status, answer = await api("POST", "/bulk/cancel", body)
        states = [view["state"] for view in answer["jobs"]]
        assert (status, states) == (200, ["cancelled", "cancelled", "succeeded"])


async def test_a_bulk_request_says_what_is_wrong_in_it(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        for action, body, problem in (
            (
                "hald",
                {"jobs": [job]},
                "action: 'hald' is unknown; did you",
            ),
            ("hold", {"jobs": []}, "jobs: must name 1 to 10000 jobs"),
            ("hold", {"jobs": [job] * 10_001}, "jobs: must name 1 to 10000 jobs"),
            ("hold", {"jobs": [job], "grace": 1}, "grace: is only for cancel"),
            ("cancel", {"jobs": [job], "grace": "x"}, "grace: 'x' is no duration"),
            ("hold", {"job": [job]}, "job: is not a known field"),
        ):
            status, message = await api.error("POST", f"/bulk/{action}", body)
            assert (status, message.startswith(problem)) == (400, True), message


async def test_a_job_is_edited(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        wanted = {"priority": "P0", "labels": ["x"], "claims": ["read:path:a"]}
        status, view = await api("POST", f"/jobs/{job}/edit", wanted)
        assert status == 200
        assert {name: view[name] for name in wanted} == wanted
        status, message = await api.error(
            "POST", f"/jobs/{job}/edit", {"priorty": "P0"}
        )
        assert status == 400
        assert message == "priorty: is not a known field; did you mean 'priority'?"
        status, message = await api.error("POST", f"/jobs/{job}/edit", {"labels": "x"})
        assert (status, message.startswith("labels: ")) == (400, True)


async def test_pauses_begin_and_end(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        await api("POST", "/repositories", {"path": "/app"})
        status, answer = await api("POST", "/pause", {"scope": "repo:app"})
        assert status == 200
        [pause] = answer["pauses"]
        assert (pause["scope"], pause["jobs"]) == ("repo:app", False)
        await api("POST", "/pause", {"scope": "all", "jobs": True})
        listed = (await api("GET", "/status"))[1]["pauses"]
        assert [entry["scope"] for entry in listed] == ["repo:app", "all"]
        status, answer = await api("POST", "/resume", {"scope": "all", "jobs": True})
        assert (status, answer["pauses"]) == (200, [pause])


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({}, "missing required field `scope`"),
        ({"scope": "all", "job": True}, "did you mean 'jobs'?"),
        ({"scope": "all", "jobs": "yes"}, "jobs: "),
        ({"scope": "repo:nowhere"}, "repo: "),
        ({"scope": "some"}, "scope: "),
    ],
)
async def test_a_pause_of_nothing_is_refused(
    tmp_path: Path, body: dict[str, object], problem: str
) -> None:
    async with open_api(tmp_path) as api:
        for verb in ("pause", "resume"):
            status, message = await api.error("POST", f"/{verb}", body)
            assert status == 400
            assert problem in message


async def test_kept_claims_are_listed_and_freed(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        assert await api("GET", "/quarantine") == (200, {"quarantined": []})
        path = f"/quarantine/{job}/release"
        status, message = await api.error("POST", path, {})
        assert (status, "no claims are kept" in message) == (409, True)
        api.control.kept[job] = {"job": job, "claims": ["write:path:src"]}
        assert await api.error("POST", path, {"a": 1}) == (
            400,
            "a: is not a known field",
        )
        _, answer = await api("GET", "/quarantine")
        assert answer["quarantined"] == [{"job": job, "claims": ["write:path:src"]}]
        assert (await api("POST", path, {}))[0] == 200
        assert await api("GET", "/quarantine") == (200, {"quarantined": []})
