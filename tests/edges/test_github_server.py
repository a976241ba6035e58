"""The GitHub for tests does as GitHub says it does; other programs can fill it."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import trio

from forge_actors.domain.github.answers import following
from forge_actors.testing.github import World, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HEADERS = {"user-agent": "test", "authorization": "Bearer t-good"}
SEED = {
    "repos": [{"id": 101, "owner": "octo", "name": "demo", "private": True}],
    "issues": [
        {"id": 9007, "repo": 101, "number": 7, "children": [9012, 9013]},
        {"id": 9012, "repo": 101, "number": 12},
        {"id": 9013, "repo": 101, "number": 13, "blocked_by": [9012]},
    ],
    "tokens": [{"token": "t-good", "login": "dev"}],
}
#: What every issue has, and of what kind it is.
REQUIRED: dict[str, Any] = {
    "id": int,
    "node_id": str,
    "number": int,
    "state": str,
    "title": str,
    "url": str,
    "html_url": str,
    "repository_url": str,
    "labels_url": str,
    "comments_url": str,
    "events_url": str,
    "user": dict,
    "labels": list,
    "locked": bool,
    "comments": int,
    "created_at": str,
    "updated_at": str,
}
NULLABLE = ("closed_at", "milestone", "state_reason", "body", "parent_issue_url")


@asynccontextmanager
async def client(prefix: str = "") -> AsyncIterator[httpx2.AsyncClient]:
    async with (
        serving(World(), prefix=prefix) as server,
        httpx2.AsyncClient(
            base_url=server.site, headers=HEADERS, trust_env=False
        ) as made,
    ):
        seeded = await made.post("/__fake__/seed", json=SEED)
        assert seeded.status_code == 200, seeded.text
        yield made


async def test_every_issue_has_what_is_always_there() -> None:
    async with client() as http:
        issues = (await http.get("/repos/octo/demo/issues?state=all")).json()
        assert len(issues) == 3
        for issue in issues:
            for name, kind in REQUIRED.items():
                assert isinstance(issue[name], kind), name
            assert set(NULLABLE) <= set(issue)
        [seven] = [each for each in issues if each["number"] == 7]
        assert seven["sub_issues_summary"]["total"] == 2
        [last] = [each for each in issues if each["number"] == 13]
        assert last["issue_dependencies_summary"] == {
            "blocked_by": 1,
            "blocking": 0,
            "total_blocked_by": 1,
            "total_blocking": 0,
        }
        blocking = await http.get("/repos/octo/demo/issues/12/dependencies/blocking")
        assert [each["number"] for each in blocking.json()] == [13]


async def test_its_links_lead_through_every_page_once() -> None:
    async with client("/api/v3") as http:
        url: str | None = "/api/v3/repos/Octo/DEMO/issues/7/sub_issues?per_page=1"
        seen = []
        while url is not None:
            answer = await http.get(url)
            seen += [each["number"] for each in answer.json()]
            url = following(answer.headers.get("link"))
            assert url is None or "/api/v3/repositories/101/issues/7/" in url
        assert seen == [12, 13]


async def test_it_refuses_as_github_does() -> None:
    async with client() as http:
        place = "/repos/octo/demo"
        unknown = {"authorization": "Bearer t-bad"}
        assert (await http.get(place, headers=unknown)).status_code == 401
        nobody = {"authorization": ""}
        assert (await http.get(place, headers=nobody)).status_code == 404
        old = {"x-github-api-version": "2019-01-01"}
        assert (await http.get(place, headers=old)).status_code == 400
        assert (await http.get(f"{place}/issues/7/")).status_code == 404
        assert (await http.delete(place)).status_code == 405
        del http.headers["user-agent"]
        bare = await http.get(place)
        assert (bare.status_code, bare.headers["content-type"]) == (403, "text/plain")


async def test_a_mark_stays_until_something_changes_and_costs_nothing() -> None:
    async with client() as http:
        place = "/repos/octo/demo/issues/12"
        first = await http.get(place)
        known = {"if-none-match": first.headers["etag"]}
        again = await http.get(place, headers=known)
        assert (again.status_code, again.content) == (304, b"")
        left = first.headers["x-ratelimit-remaining"]
        assert again.headers["x-ratelimit-remaining"] == left
        await http.post("/__fake__/mutate", json={"close": 9012})
        changed = await http.get(place, headers=known)
        assert (changed.status_code, changed.json()["state"]) == (200, "closed")


async def test_other_programs_have_things_happen_there() -> None:
    async with client() as http:
        fault = {"path": "/issues/13$", "nth": 2, "status": 429}
        await http.post("/__fake__/fault", json=fault)
        after = {"path": "/issues/13$", "nth": 1, "mutate": {"delete": 9012}}
        await http.post("/__fake__/after", json=after)
        wrong = await http.post("/__fake__/mutate", json={"close": 1})
        assert wrong.status_code == 400
        for status in (200, 429):
            answer = await http.get("/repos/octo/demo/issues/13")
            assert answer.status_code == status
        assert (await http.get("/repos/octo/demo/issues/12")).status_code == 410
        log = (await http.get("/__fake__/log")).json()
        assert [each["status"] for each in log] == [200, 429, 410]
        assert "t-good" not in json.dumps(log)


async def test_it_can_be_a_program_of_its_own() -> None:
    module = "forge_actors.testing.github"
    command = [sys.executable, "-m", module, "--prefix", "/api/v3"]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        base = bytes(await process.stdout.receive_some()).decode().strip()
        async with httpx2.AsyncClient(headers=HEADERS, trust_env=False) as http:
            answer = await http.get(f"{base}/rate_limit")
            assert answer.status_code == 401
    finally:
        process.terminate()
        await process.wait()
        await process.stdout.aclose()
