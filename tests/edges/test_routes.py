"""Every route and every error, over a real socket, in front of a fake runtime."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from forge_actors.domain.errors import NotFound, StoreFailed
from forge_actors.edges.gateway.handling import holds
from forge_actors.edges.gateway.messages import Request

if TYPE_CHECKING:
    from pathlib import Path


from tests.edges.routes_kit import open_api


async def test_status_and_stop(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        status, answer = await api("GET", "/status")
        assert (status, answer["ready"]) == (200, True)
        found = {"stopping": True, "running": 0, "jobs": False}
        assert await api("POST", "/stop") == (202, found)
        assert api.control.stop_requested.is_set()
        assert api.control.ends_jobs is False
        found["jobs"] = True
        assert await api("POST", "/stop", {"jobs": True}) == (202, found)
        assert api.control.ends_jobs is True
        check = {"release": "0-mine", "active": "0-mine", "revision": 1}
        answer = {**check, "superseded": False, "running": 0}
        assert await api("POST", "/release/check") == (200, answer)


async def test_jobs_are_submitted_listed_and_shown(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        first = await api.submit(kind="check", labels=["x"])
        second = await api.submit(request_id="same")
        assert await api.submit(request_id="same") == second
        listed = (await api("GET", "/jobs"))[1]["jobs"]
        assert [job["id"] for job in listed] == [second, first]
        for query in ("kind=check", "label=x", f"before={second}"):
            listed = (await api("GET", f"/jobs?{query}"))[1]["jobs"]
            assert [job["id"] for job in listed] == [first], query
        api.control.end(first)
        listed = (await api("GET", "/jobs?active=1&state=queued&state=running"))[1]
        assert [job["id"] for job in listed["jobs"]] == [second]
        listed = (await api("GET", "/jobs?limit=1"))[1]["jobs"]
        assert [job["id"] for job in listed] == [second]
        status, view = await api("GET", f"/jobs/{first[-4:]}")
        assert (status, view["id"], view["state"]) == (200, first, "succeeded")
        status, answer = await api("GET", f"/jobs/{first}/fence?attempt=1&fence=1")
        assert (status, answer["current"]) == (200, False)
        assert answer["code"] == "FENCING_TOKEN_STALE"
        status, answer = await api("GET", f"/jobs/{second}/why")
        assert answer["sentence"]


async def test_jobs_are_selected(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        first = await api.submit(kind="check", origin="job:x")
        second = await api.submit()
        for body, wanted in (
            ({"repo": ["app"]}, [second, first]),
            ({"origin": ["job:x"]}, [first]),
            ({"jobs": [second[-4:]]}, [second]),
            ({"failed": True}, []),
        ):
            assert await api("POST", "/select", body) == (200, {"jobs": wanted})
        listed = (await api("GET", "/jobs?origin=job:x&failed=0"))[1]["jobs"]
        assert [job["id"] for job in listed] == [first]


async def test_a_batch_is_taken_whole(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        lines = b'{"repo":"app","argv":["a"]}\n\n{"repo":"./b","argv":["b"]}'
        status, answer = await api.raw("POST", "/batch?base=/src/top", lines)
        assert status == 201
        jobs = [job["id"] for job in json.loads(answer)["jobs"]]
        repos = [api.control.requests[job].repo for job in jobs]
        assert repos == ["app", "/src/top/b"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"repo":"app"', "line 3: is not valid JSON"),
        (b'{"repo":"app","argv":["x"],"kidn":"check"}', "did you mean 'kind'?"),
        (b'{"repo":"app","argv":["x"],"kind":"chekc"}', "line 3: kind: 'chekc'"),
        (b'{"repo":"app","argv":"x"}', "line 3: argv: expected `array`"),
        (b'{"repo":"\xff","argv":["x"]}', "line 3: "),
        (b"[" * 100_000, "line 3: "),
        (b'{"repo":"app","argv":["\\ud800"]}', "line 3: "),
        (b'{"repo":"../b","argv":["x"]}', "line 3: repo: '../b' is relative"),
    ],
)
async def test_a_bad_line_is_named_and_nothing_is_taken(
    tmp_path: Path, line: bytes, message: str
) -> None:
    async with open_api(tmp_path) as api:
        good = b'{"repo":"app","argv":["a"]}\n'
        status, answer = await api.raw("POST", "/batch", good + b"\n" + line + b"\n")
        assert status == 400
        found = json.loads(answer)["detail"]
        assert found.startswith("line 3: ")
        assert message in found
        assert not api.control.views


@pytest.mark.parametrize(
    ("method", "target", "body", "status", "message"),
    [
        ("GET", "/nothing", None, 404, "there is nothing at /v1/nothing"),
        ("GET", "/jobs/a/b/c/d", None, 404, "there is nothing"),
        ("DELETE", "/jobs", None, 405, "answers GET and POST, not DELETE"),
        ("GET", "/jobs?stat=queued", None, 400, "did you mean 'state'?"),
        ("GET", "/jobs?state=quued", None, 400, "did you mean 'queued'?"),
        ("GET", "/jobs?limit=0", None, 400, "limit: 0 is outside 1 to 1000"),
        ("GET", "/jobs?limit=x", None, 400, "limit: 'x' is no whole number"),
        ("GET", "/jobs?limit=1&limit=2", None, 400, "limit: is given more than once"),
        ("GET", "/jobs?active=maybe", None, 400, "active: 'maybe' is neither"),
        ("GET", "/jobs?active", None, 400, "active: '' is neither 1 nor 0"),
        ("GET", "/status?x=1", None, 400, "x: is no parameter here"),
        ("GET", "/jobs/nowhere", None, 404, "there is no job 'nowhere'"),
        ("GET", "/jobs/nowhere/why", None, 404, "there is no job"),
        ("GET", "/jobs/nowhere/fence?attempt=1", None, 400, "attempt=N and fence=N"),
        ("GET", "/jobs/nowhere/fence?attempt=1&fence=x", None, 400, "no whole number"),
        ("GET", "/jobs/nowhere/fence?attempt=1&fence=0", None, 400, "fence: 0 is"),
        ("GET", "/jobs/nowhere/logs/stdout", None, 404, "there is no job"),
        ("GET", "/jobs/nowhere/logs/stdin", None, 400, "stream: 'stdin' is unknown"),
        ("POST", "/jobs/nowhere/cancel", None, 404, "there is no job"),
        ("POST", "/stop", {"x": 1}, 400, "x: is not a known field"),
        ("POST", "/stop", [], 400, "expected `object`"),
        ("POST", "/repositories/app/disable", {"x": 1}, 400, "x: is not a known"),
        ("POST", "/repositories/app/enable", {"x": 1}, 400, "x: is not a known"),
        ("POST", "/jobs", None, 400, "missing required field `jobs`"),
        ("POST", "/jobs", [], 400, "expected `object`"),
        ("POST", "/jobs", {"jobs": []}, 400, "jobs: must hold 1 to"),
        ("POST", "/jobs", {"jobs": [{"repo": "a"}]}, 400, "field `argv`"),
        ("POST", "/select", {}, 400, "selection: selects nothing"),
        ("POST", "/select", {"state": ["x"]}, 400, "state[0]: 'x' is unknown"),
        ("POST", "/select", {"staet": ["x"]}, 400, "did you mean 'state'?"),
        ("POST", "/select", {"jobs": ["nowhere"]}, 404, "there is no job"),
        ("POST", "/retry", {"jobs": []}, 400, "jobs: names no job to retry"),
        ("POST", "/retry", {}, 400, "missing required field `jobs`"),
        ("POST", "/retry", {"jobs": ["nowhere"]}, 404, "there is no job"),
        ("POST", "/jobs/nowhere/retry", None, 404, "there is no job"),
        ("POST", "/wait", {"jobs": []}, 400, "jobs: names no job"),
        ("POST", "/wait", {"jobs": ["nowhere"]}, 404, "there is no job"),
        ("POST", "/wait", {"jobs": ["a"], "timeout": "x"}, 400, "timeout: 'x' is no"),
        ("POST", "/wait", {"jobs": ["a"], "timeout": -1}, 400, "timeout: -1"),
        ("POST", "/repositories", {}, 400, "missing required field `path`"),
        ("POST", "/repositories", {"path": "x"}, 400, "path: 'x' is not absolute"),
        ("GET", "/repositories/x", None, 404, "there is no repository"),
        ("DELETE", "/repositories/x?cancel=2", None, 400, "cancel: '2' is neither"),
        ("GET", "/events?after=-1", None, 400, "after: -1 is outside"),
    ],
)
async def test_every_mistake_has_its_status_and_its_sentence(
    tmp_path: Path, method: str, target: str, body: object, status: int, message: str
) -> None:
    async with open_api(tmp_path) as api:
        found, text = await api.error(method, target, body)
        assert found == status
        assert message in text
        assert not api.control.stop_requested.is_set()


@pytest.mark.parametrize("blank", [0, 2])
async def test_the_only_line_of_a_batch_is_named_too(
    tmp_path: Path, blank: int
) -> None:
    async with open_api(tmp_path) as api:
        line = b'{"repo":"app","argv":["x"],"kind":"no"}'
        status, answer = await api.raw("POST", "/batch", b"\n" * blank + line)
        assert status == 400
        assert f"line {blank + 1}: kind: 'no'" in json.loads(answer)["detail"]
        api.control.failure = NotFound("there is no repository 'app'")
        status, answer = await api.raw("POST", "/batch", b"\n" * blank + line)
        assert status == 404
        message = json.loads(answer)["detail"]
        assert message == f"line {blank + 1}: there is no repository 'app'"


async def test_an_error_carries_its_code_its_field_and_what_is_allowed(
    tmp_path: Path,
) -> None:
    async with open_api(tmp_path) as api:
        _, answer = await api("GET", "/jobs?kind=chekc")
        assert answer["code"] == "INVALID_INPUT"
        assert answer["field"] == "kind"
        assert "check" in answer["allowed"]


async def test_a_store_that_fails_is_503_and_a_bug_is_500(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        api.control.failure = StoreFailed("the disk is full")
        assert await api.error("GET", "/status") == (503, "the disk is full")
        api.control.failure = KeyError("inner secret")
        status, text = await api.error("GET", "/status")
        assert status == 500
        assert "secret" not in text


async def test_a_job_is_cancelled_once(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        status, view = await api("POST", f"/jobs/{job}/cancel", {"grace": "2s"})
        assert (status, view["state"]) == (200, "cancelled")
        assert (await api.error("POST", f"/jobs/{job}/cancel"))[0] == 409


async def test_jobs_are_retried_as_new_ones(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        first = await api.submit()
        second = await api.submit(after=[first])
        assert (await api.error("POST", f"/jobs/{first}/retry"))[0] == 409
        api.control.end(first, "failed", exit_code=1)
        api.control.end(second, "human_attention_required", exit_code=None)
        status, one = await api("POST", f"/jobs/{first}/retry", {"origin": "job:x"})
        assert (status, one["retry_of"], one["existing"]) == (201, first, False)
        assert api.control.views[one["id"]].origin == "job:x"
        status, answer = await api("POST", "/retry", {"jobs": [second, first]})
        assert [made["retry_of"] for made in answer["jobs"]] == [second, first]
        new_second, new_first = (made["id"] for made in answer["jobs"])
        assert api.control.views[new_second].after == [new_first]


async def test_wait_is_one_held_request(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        jobs = [await api.submit(), await api.submit()]
        answers: list[Any] = []

        async def wait() -> None:
            answers.append(await api("POST", "/wait", {"jobs": jobs, "timeout": None}))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            api.control.end(jobs[0])
            await trio.testing.wait_all_tasks_blocked()
            assert not answers
            api.control.end(jobs[1], "failed", exit_code=3)
        status, answer = answers[0]
        assert (status, answer["timed_out"]) == (200, False)
        states = [job["state"] for job in answer["jobs"]]
        assert states == ["succeeded", "failed"]


@pytest.mark.mock_clock
async def test_wait_ends_when_its_time_is_over(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        begin = trio.current_time()
        _, answer = await api("POST", "/wait", {"jobs": [job], "timeout": "1h"})
        assert trio.current_time() - begin == pytest.approx(3600)
        assert answer["timed_out"] is True
        assert answer["jobs"][0]["state"] == "queued"


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("POST", "/wait"),
        ("GET", "/jobs/j000001/logs/stdout?follow=1"),
        ("GET", "/jobs/j000001/logs/both?follow=1"),
        ("GET", "/events?follow=1"),
        ("GET", "/events?follow=1&kind=x"),
        ("GET", "/status?wait=idle"),
    ],
)
async def test_a_client_that_leaves_ends_what_is_held_for_it(
    tmp_path: Path, method: str, target: str
) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        body = {"jobs": [job]} if method == "POST" else None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(api, method, target, body)
            await trio.testing.wait_all_tasks_blocked()
            assert api.control.held == 1
            nursery.cancel_scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert api.control.held == 0


@pytest.mark.parametrize(
    ("method", "path", "query", "held"),
    [
        ("GET", "v1/status", "", False),
        ("POST", "v1/jobs", "", False),
        ("POST", "v1/wait", "", True),
        ("GET", "v1/jobs/abcd/wait", "timeout=1", True),
        ("GET", "v1/jobs/abcd/logs/stdout", "tail=1", False),
        ("GET", "v1/jobs/abcd/logs/stdout", "tail=1&follow=1", True),
        ("GET", "v1/jobs/abcd/logs/stdout", "%66ollow=1", True),
        ("HEAD", "v1/events", "follow=1", True),
        ("GET", "v1/events", "follow=1&format=sse", False),
        ("GET", "v1/status", "wait=idle", True),
        ("POST", "v1/drain", "", True),
        ("DELETE", "v1/drain", "", False),
        ("DELETE", "v1/repositories/app", "", False),
        ("DELETE", "v1/repositories/app", "cancel=1", True),
        ("POST", "v1/nothing", "follow=1", False),
    ],
)
def test_a_route_tells_whether_it_holds_a_request(
    method: str, path: str, query: str, held: bool
) -> None:
    request = Request(method, tuple(path.split("/")), query, {})
    assert holds(request) is held


@pytest.mark.parametrize(
    ("path", "query", "held"),
    [
        ("v1/events", "follow=1", False),
        ("v1/events", "follow=1&format=jsonl", True),
        ("v1/jobs/abcd/logs/stdout", "follow=1", True),
    ],
)
def test_only_events_are_a_stream_that_holds_no_place(
    path: str, query: str, held: bool
) -> None:
    headers = {"accept": "text/event-stream"}
    request = Request("GET", tuple(path.split("/")), query, headers)
    assert holds(request) is held
