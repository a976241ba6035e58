"""Every route and every error, over a real socket, in front of a fake runtime."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from forge_actors.client.wire import ResponseReader, encode_request
from forge_actors.domain.errors import NotFound, StoreFailed
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from forge_actors.testing.control import FakeControl


class Api:
    """Asks one thing a connection; answers are (status, decoded body)."""

    def __init__(self, control: FakeControl, path: str) -> None:
        self.control = control
        self.path = path

    async def raw(
        self, method: str, target: str, body: bytes | None = None
    ) -> tuple[int | None, bytes]:
        async with await trio.open_unix_socket(self.path) as stream:
            await stream.send_all(encode_request(method, f"/v1{target}", body))
            reader = ResponseReader()
            answer = b""
            while not reader.complete:
                data = await stream.receive_some()
                if not data:
                    break
                answer += reader.feed(data)
            return reader.status, answer

    async def __call__(
        self, method: str, target: str, body: object = None
    ) -> tuple[int | None, Any]:
        data = None if body is None else json.dumps(body).encode()
        status, answer = await self.raw(method, target, data)
        return status, json.loads(answer)

    async def error(self, method: str, target: str, body: object = None) -> Any:
        status, answer = await self(method, target, body)
        return (status, answer["error"]["message"])

    async def submit(self, **fields: object) -> str:
        job = {"repo": "app", "argv": ["make"], **fields}
        status, answer = await self("POST", "/jobs", {"jobs": [job]})
        assert status == 201
        found: str = answer["jobs"][0]["id"]
        return found


@asynccontextmanager
async def open_api(home: Path) -> AsyncGenerator[Api, None]:
    async with fake_service(home) as control:
        yield Api(control, str(home / "control.sock"))


async def test_status_and_stop(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        status, answer = await api("GET", "/status")
        assert (status, answer["ready"]) == (200, True)
        assert await api("POST", "/stop") == (202, {"stopping": True})
        assert api.control.stop_requested.is_set()


async def test_jobs_are_submitted_listed_and_shown(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        first = await api.submit(kind="check", labels=["x"])
        second = await api.submit(request_id="same")
        assert await api.submit(request_id="same") == second
        listed = (await api("GET", "/jobs"))[1]["jobs"]
        assert [job["id"] for job in listed] == [second, first]
        for query in ("kind=check", "label=x", f"before={second}", "label=x&label=y"):
            listed = (await api("GET", f"/jobs?{query}"))[1]["jobs"]
            assert [job["id"] for job in listed] == [first], query
        api.control.end(first)
        listed = (await api("GET", "/jobs?active=1&state=queued&state=running"))[1]
        assert [job["id"] for job in listed["jobs"]] == [second]
        listed = (await api("GET", "/jobs?limit=1"))[1]["jobs"]
        assert [job["id"] for job in listed] == [second]
        status, view = await api("GET", f"/jobs/{first[-4:]}")
        assert (status, view["id"], view["state"]) == (200, first, "succeeded")
        status, answer = await api("GET", f"/jobs/{second}/why")
        assert answer["sentence"]


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
    ],
)
async def test_a_bad_line_is_named_and_nothing_is_taken(
    tmp_path: Path, line: bytes, message: str
) -> None:
    async with open_api(tmp_path) as api:
        good = b'{"repo":"app","argv":["a"]}\n'
        status, answer = await api.raw("POST", "/batch", good + b"\n" + line + b"\n")
        assert status == 400
        found = json.loads(answer)["error"]["message"]
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
        ("GET", "/status?x=1", None, 400, "x: is no parameter here"),
        ("GET", "/jobs/nowhere", None, 404, "there is no job 'nowhere'"),
        ("GET", "/jobs/nowhere/why", None, 404, "there is no job"),
        ("GET", "/jobs/nowhere/logs/stdout", None, 404, "there is no job"),
        ("GET", "/jobs/nowhere/logs/stdin", None, 400, "stream: 'stdin' is unknown"),
        ("POST", "/jobs/nowhere/cancel", None, 404, "there is no job"),
        ("POST", "/jobs", None, 400, "missing required field `jobs`"),
        ("POST", "/jobs", [], 400, "expected `object`"),
        ("POST", "/jobs", {"jobs": []}, 400, "jobs: must hold 1 to"),
        ("POST", "/jobs", {"jobs": [{"repo": "a"}]}, 400, "field `argv`"),
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


@pytest.mark.parametrize("blank", [0, 2])
async def test_the_only_line_of_a_batch_is_named_too(
    tmp_path: Path, blank: int
) -> None:
    async with open_api(tmp_path) as api:
        line = b'{"repo":"app","argv":["x"],"kind":"no"}'
        status, answer = await api.raw("POST", "/batch", b"\n" * blank + line)
        assert status == 400
        assert f"line {blank + 1}: kind: 'no'" in json.loads(answer)["error"]["message"]
        api.control.failure = NotFound("there is no repository 'app'")
        status, answer = await api.raw("POST", "/batch", b"\n" * blank + line)
        assert status == 404
        message = json.loads(answer)["error"]["message"]
        assert message == f"line {blank + 1}: there is no repository 'app'"


async def test_an_error_carries_its_code_its_field_and_what_is_allowed(
    tmp_path: Path,
) -> None:
    async with open_api(tmp_path) as api:
        _, answer = await api("GET", "/jobs?kind=chekc")
        assert answer["error"]["code"] == "INVALID_INPUT"
        assert answer["error"]["field"] == "kind"
        assert "check" in answer["error"]["allowed"]


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


async def test_repositories_come_and_go(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        body = {"path": "/src/app", "name": None}
        status, view = await api("POST", "/repositories", body)
        assert (status, view["name"]) == (201, "app")
        listed = (await api("GET", "/repositories"))[1]["repositories"]
        assert [repo["name"] for repo in listed] == ["app"]
        assert (await api("GET", "/repositories/app"))[1]["path"] == "/src/app"
        job = await api.submit()
        assert (await api.error("DELETE", "/repositories/app"))[0] == 409
        assert (await api("DELETE", "/repositories/app?cancel=1"))[0] == 200
        assert api.control.views[job].state == "cancelled"
        assert (await api.error("GET", "/repositories/app"))[0] == 404


# Output


async def test_output_is_read_byte_for_byte(tmp_path: Path) -> None:
    data = bytes(range(256)) * 3000
    async with open_api(tmp_path) as api:
        job = await api.submit()
        api.control.write(job, data)
        api.control.write(job, b"err", stream="stderr")
        logs = f"/jobs/{job}/logs"
        assert await api.raw("GET", f"{logs}/stdout") == (200, data)
        assert (await api.raw("GET", f"{logs}/both"))[1] == data + b"err"
        part = await api.raw("GET", f"{logs}/stdout?offset=100&limit=300000")
        assert part[1] == data[100:300_100]
        assert (await api.raw("GET", f"{logs}/stdout?offset=-5"))[1] == data[-5:]
        assert (await api.error("GET", f"{logs}/both?offset=1"))[0] == 400


@pytest.mark.parametrize("lines", [0, 1, 3, 20_000, 100_000])
async def test_the_tail_is_whole_lines(tmp_path: Path, lines: int) -> None:
    text = b"".join(b"line %d\n" % number for number in range(50_000)) + b"rest"
    async with open_api(tmp_path) as api:
        job = await api.submit()
        api.control.write(job, text)
        wanted = b"".join(text.splitlines(keepends=True)[-lines:]) if lines else b""
        api.control.end(job)
        found = await api.raw("GET", f"/jobs/{job}/logs/stdout?tail={lines}")
        assert found == (200, wanted)


async def test_a_gap_is_a_line_of_its_own(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        job = await api.submit()
        api.control.write(job, b"head" + b"?" * 10 + b"tail")
        api.control.gaps[job, "stdout"] = (4, 14)
        note = b"[forge-actors: 10 bytes of output were not kept]\n"
        logs = f"/jobs/{job}/logs/stdout"
        assert (await api.raw("GET", logs))[1] == b"head\n" + note + b"tail"
        assert (await api.raw("GET", f"{logs}?offset=4"))[1] == note + b"tail"


@pytest.mark.parametrize("stream", ["stdout", "both"])
async def test_followed_output_ends_with_the_job(tmp_path: Path, stream: str) -> None:
    answers: list[Any] = []
    async with open_api(tmp_path) as api:
        job = await api.submit()

        async def follow() -> None:
            answers.append(await api.raw("GET", f"/jobs/{job}/logs/{stream}?follow=1"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            for text, name in (
                (b"1\n", "stdout"),
                (b"2\n", "stderr"),
                (b"3\n", "stdout"),
            ):
                await trio.testing.wait_all_tasks_blocked()
                api.control.write(job, text, stream=name)
            await trio.testing.wait_all_tasks_blocked()
            assert not answers
            api.control.end(job)
    assert answers == [(200, b"1\n2\n3\n" if stream == "both" else b"1\n3\n")]


async def test_events_are_lines_and_can_be_followed(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        for kind in ("a", "b", "c"):
            api.control.emit(kind)
        _, body = await api.raw("GET", "/events?after=1&limit=1")
        assert [json.loads(line)["kind"] for line in body.splitlines()] == ["b"]
        async with await trio.open_unix_socket(api.path) as stream:
            await stream.send_all(encode_request("GET", "/v1/events?follow=1&after=2"))
            reader, seen = ResponseReader(), b""
            while seen.count(b"\n") < 1:
                seen += reader.feed(await stream.receive_some())
            api.control.emit("d")
            while seen.count(b"\n") < 2:
                seen += reader.feed(await stream.receive_some())
        assert [json.loads(line)["kind"] for line in seen.splitlines()] == ["c", "d"]


async def test_head_is_answered_like_get(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        async with await trio.open_unix_socket(api.path) as stream:
            await stream.send_all(encode_request("HEAD", "/v1/events?follow=1"))
            data = b""
            async for piece in stream:
                data += piece
        assert data.startswith(b"HTTP/1.1 200")
        assert data.endswith(b"\r\n\r\n")
