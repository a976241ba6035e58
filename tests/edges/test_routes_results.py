"""Routes: what a job changed, and bringing that into a checkout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.client.aio import connect
from forge_actors.domain.results import JobResult
from tests.edges.routes_kit import open_api

if TYPE_CHECKING:
    from pathlib import Path

RESULT = JobResult("forge/x", "0" * 40, file_count=2, uncommitted=1)
PATCH = b"diff --git a/x b/x\n\0\xff"


async def test_a_diff_is_sent_as_it_is_in_the_form_that_is_asked_for(
    tmp_path: Path,
) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        status, message = await api.error("GET", f"/jobs/{job}/diff")
        assert (status, "no worktree" in message) == (409, True)
        api.control.diffs = {(job, "patch"): PATCH, (job, "names"): b"x\n"}
        assert await api.raw("GET", f"/jobs/{job}/diff") == (200, PATCH)
        assert await api.raw("GET", f"/jobs/{job}/diff?form=names") == (200, b"x\n")
        status, message = await api.error("GET", f"/jobs/{job}/diff?form=name")
        assert (status, "did you mean 'names'" in message) == (400, True)
        async with connect(tmp_path) as client:
            assert await client.diff(job) == PATCH


async def test_a_branch_is_applied_in_the_way_that_is_asked_for(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        target = f"/jobs/{job}/apply"
        assert (await api.error("POST", target, {}))[0] == 409
        api.control.diffs[job, "patch"] = PATCH
        assert (await api.error("POST", target, {"mode": "rebase"}))[0] == 400
        assert (await api.error("POST", target, {"force": True}))[0] == 400
        status, answer = await api("POST", target, {})
        assert (status, answer["how"]) == (200, "fast-forward")
        async with connect(tmp_path) as client:
            done = await client.apply(job, "merge", commit_first=True)
        assert done.into == "main"
        assert api.control.applied == [(job, "auto", False), (job, "merge", True)]


async def test_a_job_is_shown_with_what_it_did_in_its_worktree(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        api.control.results[job] = RESULT
        assert (await api("GET", f"/jobs/{job}"))[1]["result"] is None
        view = structs.replace(api.control.views[job], worktree={"state": "ready"})
        api.control.views[job] = view
        shown = (await api("GET", f"/jobs/{job}"))[1]["result"]
        assert (shown["branch"], shown["uncommitted"]) == ("forge/x", 1)
        async with connect(tmp_path) as client:
            assert (await client.job(job)).result == RESULT
