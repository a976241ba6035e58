"""The routes of the policy."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import trio

from forge_actors.client.wire import ResponseReader, encode_request
from tests.edges.routes_kit import open_api

if TYPE_CHECKING:
    from pathlib import Path

    from tests.edges.routes_kit import Api


async def test_a_policy_is_set_read_and_ended(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        status, view = await api("GET", "/policy")
        assert (status, view["mode"], view["revision"]) == (200, "normal", 0)
        body = {"mode": "exclusive", "work": "wf-1", "for": "2h", "reason": "r"}
        status, view = await api("POST", "/policy", body)
        assert (status, view["mode"], view["work"]) == (200, "exclusive", "wf-1")
        assert (await api("GET", "/status"))[1]["policy"] == view
        status, message = await api.error("POST", "/policy", {"mode": "exclusive"})
        assert (status, message.partition(":")[0]) == (400, "work")
        status, message = await api.error("POST", "/policy", {"mode": "some"})
        assert (status, "mode" in message) == (400, True)
        status, message = await api.error("POST", "/policy/narrow", {"work": "wf-2"})
        assert status == 409
        assert message.startswith("WORK_ADMISSION_TRANSITION_REQUIRES_CONVERGENCE")
        stale = {"mode": "normal", "revision": 0}
        assert (await api.error("POST", "/policy", stale))[0] == 412
        status, view = await api("DELETE", "/policy")
        assert (status, view["mode"], view["note"]) == (200, "normal", "")
        await api("POST", "/policy", {"mode": "convergence"})
        status, view = await api("POST", "/policy/narrow", {"work": "wf-2"})
        assert (status, view["mode"], view["revision"]) == (200, "exclusive", 4)


async def test_only_the_policy_that_was_read_is_changed(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        _, tag, _ = await send(api, "GET", "/policy")
        first = {"mode": "convergence"}
        status, _, _ = await send(api, "POST", "/policy", first, f"if-match: {tag}")
        assert status == 200
        status, _, told = await send(api, "DELETE", "/policy", None, f"if-match: {tag}")
        assert (status, told["code"]) == (412, "PRECONDITION_FAILED")
        _, tag, _ = await send(api, "GET", "/policy")
        status, _, _ = await send(api, "DELETE", "/policy", None, f"if-match: {tag}")
        assert status == 200


async def test_a_job_changes_no_policy(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        mark = "forge-job: 1m8p4m8vr4gxxcyy9nk"
        for method, path, body in (
            ("POST", "/policy", {"mode": "convergence"}),
            ("POST", "/policy/narrow", {"work": "x"}),
            ("DELETE", "/policy", None),
        ):
            status, _, told = await send(api, method, path, body, mark)
            assert (status, "a person can" in told["detail"]) == (409, True)
        assert (await send(api, "GET", "/policy", None, mark))[0] == 200


async def send(
    api: Api, method: str, path: str, body: object = None, header: str = ""
) -> tuple[int | None, str | None, Any]:
    """The status, the ETag and the body of the answer to a request with a header."""
    data = None if body is None else json.dumps(body).encode()
    request = encode_request(method, f"/v1{path}", data)
    if header:
        request = request.replace(b"\r\n", f"\r\n{header}\r\n".encode(), 1)
    async with await trio.open_unix_socket(api.path) as stream:
        await stream.send_all(request)
        raw, reader, answer = b"", ResponseReader(), b""
        while not reader.complete:
            piece = await stream.receive_some()
            raw += piece
            answer += reader.feed(piece)
    head = raw.partition(b"\r\n\r\n")[0].decode().lower().splitlines()
    tags = [line.partition(": ")[2] for line in head if line.startswith("etag:")]
    return reader.status, tags[0] if tags else None, json.loads(answer)
