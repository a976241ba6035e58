"""The sessions of agents over HTTP: how many there are, and how they end."""

from __future__ import annotations

import json
import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.edges.gateway.mcp.caller import MAX_CALLS, Caller
from forge_actors.edges.gateway.mcp.sessions import Session, SessionLimits, Sessions
from forge_actors.edges.gateway.messages import Live, Request, Response
from tests.edges.http_kit import connect
from tests.edges.mcp_kit import (
    HEADERS,
    INITIALIZE,
    URL,
    called,
    leaves_generators,
    message,
    opened,
    serving,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2

pytestmark = leaves_generators


async def status_in(http: httpx2.AsyncClient, session: dict[str, str]) -> int:
    answer = await http.post(URL, json=message("ping"), headers=session)
    return answer.status_code


async def test_the_session_that_was_idle_for_longest_makes_room(tmp_path: Path) -> None:
    limits = SessionLimits(sessions=3)
    async with serving(tmp_path, limits) as served, served.http() as http:
        first, second, third = [await opened(http) for _ in range(3)]
        assert await status_in(http, first) == 200
        fourth = await opened(http)
        assert await status_in(http, second) == 404
        for session in (first, third, fourth):
            assert await status_in(http, session) == 200
        assert served.gateway.sessions == 3


async def test_a_session_that_waits_for_an_answer_is_not_ended_for_another(
    tmp_path: Path,
) -> None:
    limits = SessionLimits(sessions=2)
    async with serving(tmp_path, limits) as served, AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(served.client("legacy")) for _ in range(2)
        ]
        made = await called(clients[0], "submit", repo="app", command=["x"])
        ended: list[bool] = []

        async def wait(number: int) -> None:
            answer = await called(clients[number], "wait", jobs=[made["id"]])
            ended.append(answer["ended"])

        async with trio.open_nursery() as nursery:
            for number in range(2):
                nursery.start_soon(wait, number)
            await served.control.until_held(2)
            async with served.http() as http:
                refused = await http.post(URL, json=INITIALIZE, headers=HEADERS)
                assert refused.status_code == 503
                assert "mcp_session_capacity_exhausted" in refused.text
                assert "retry-after" in refused.headers
            served.control.end(made["id"])
        assert ended == [True, True]
        async with served.http() as http:
            await opened(http)


class Expiries(logging.Handler):
    """Tells when the SDK ends a session."""

    def __init__(self) -> None:
        super().__init__()
        self.came = trio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if "idle timeout" in record.getMessage():
            self.came.set()


@pytest.fixture
def expiries(caplog: pytest.LogCaptureFixture) -> Iterator[Expiries]:
    handler, name = Expiries(), "mcp.server.streamable_http_manager"
    caplog.set_level(logging.INFO, name)
    logging.getLogger(name).addHandler(handler)
    yield handler
    logging.getLogger(name).removeHandler(handler)


async def test_an_idle_session_expires_but_not_while_it_waits(
    tmp_path: Path, expiries: Expiries
) -> None:
    limits = SessionLimits(idle=0.2)
    async with serving(tmp_path, limits) as served, served.client("legacy") as client:
        made = await called(client, "submit", repo="app", command=["x"])

        async def end() -> None:
            await served.control.until_held(1)
            async with served.http() as http:
                idle = await opened(http)
                await expiries.came.wait()
                assert await status_in(http, idle) == 404
            served.control.end(made["id"])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(end)
            answer = await called(client, "wait", jobs=[made["id"]])
        assert answer["ended"]


async def test_a_client_that_says_goodbye_leaves_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for _ in range(5):
            async with served.client("legacy") as client:
                await client.list_tools()
                assert served.gateway.sessions == 1
        assert served.gateway.sessions == 0


async def test_requests_without_a_session_leave_none(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, served.client("auto") as client:
        await client.list_tools()
        assert served.gateway.sessions == 0
        async with served.http() as http:
            for body in (message("ping"), {"no": "message"}, message("tools/list")):
                answer = await http.post(URL, json=body, headers=HEADERS)
                assert answer.status_code >= 400
            answer = await http.get(URL, headers=HEADERS)
            assert answer.status_code >= 400
        assert served.gateway.sessions == 0


async def test_a_client_killed_in_the_middle_of_a_wait_ends_it(tmp_path: Path) -> None:
    params = {
        "name": "wait",
        "arguments": {"jobs": ["j000001"]},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "0"},
        },
    }
    body = json.dumps(message("tools/call", **params)).encode()
    raw = (
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"accept: application/json, text/event-stream\r\nmcp-method: tools/call\r\n"
        b"mcp-name: wait\r\n"
        b"mcp-protocol-version: 2026-07-28\r\ncontent-length: %d\r\n\r\n" % len(body)
    )
    async with serving(tmp_path) as served:
        async with served.client() as client:
            await called(client, "submit", repo="app", command=["x"])
        stream = await connect(served.path)
        await stream.send_all(raw + body)
        await served.control.until_held(1)
        await stream.aclose()
        await served.control.until_held(0)


async def test_a_client_that_leaves_with_its_answer_has_a_session(
    tmp_path: Path,
) -> None:
    told = {**HEADERS, "content-type": "application/json"}
    body = json.dumps(INITIALIZE).encode()
    request = Request("POST", ("mcp",), "", told, body)
    async with serving(tmp_path) as served, served.http() as http:
        answer = await served.gateway.handler(request)
        assert isinstance(answer, Live)
        reply = Leaving()
        with reply.scope:
            await answer.run(reply)
        assert reply.scope.cancelled_caught
        session = {**HEADERS, "mcp-session-id": reply.headers["mcp-session-id"]}
        assert await status_in(http, session) == 200


class Leaving:
    """A client that reads no further than what it wants to know."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.headers: dict[str, str] = {}

    async def whole(self, answer: Response) -> None:
        raise AssertionError("it is a stream")

    async def begin(self, head: Response) -> None:
        self.headers = head.headers

    async def send(self, data: bytes) -> None:
        if b"serverInfo" in data:
            self.scope.cancel()
        await trio.lowlevel.checkpoint()


async def test_a_session_has_only_so_many_calls_in_progress(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, served.client("legacy") as client:
        made = await called(client, "submit", repo="app", command=["x"])
        async with trio.open_nursery() as nursery:
            for _ in range(MAX_CALLS):
                nursery.start_soon(client.call_tool, "wait", {"jobs": [made["id"]]})
            await served.control.until_held(MAX_CALLS)
            answer = await client.call_tool("jobs", {})
            assert answer.is_error
            assert answer.structured_content["error"]["code"] == "BUSY"
            served.control.end(made["id"])
        await called(client, "jobs")


async def test_the_stop_ends_streams_and_sessions_within_the_drain(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, drain=3600) as served, served.http() as http:
        session = await opened(http)
        waiting = trio.Event()

        async def listen() -> None:
            async with http.stream("GET", URL, headers=session) as answer:
                assert answer.status_code == 200
                waiting.set()
                async for _ in answer.aiter_raw():
                    pass

        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen)
            await waiting.wait()
            served.server.stop()
            served.gateway.stop()
        assert served.gateway.sessions == 0


async def test_a_message_that_is_too_large_is_refused(tmp_path: Path) -> None:
    limits = SessionLimits(message_bytes=10_000)
    async with serving(tmp_path, limits) as served, served.http() as http:
        large = {**INITIALIZE, "pad": "x" * 20_000}
        answer = await http.post(URL, json=large, headers=HEADERS)
        assert answer.status_code == 413
        await opened(http)


@pytest.mark.mock_clock
async def test_sessions_are_forgotten_when_the_sdk_has_ended_them() -> None:
    sessions = Sessions(SessionLimits(sessions=2, idle=60))
    ended: list[str] = []

    def add(name: str) -> Session:
        async def close() -> None:
            ended.append(name)

        session = Session(Caller(), close)
        sessions.add(name, session)
        return session

    add("a")
    await trio.sleep(59)
    used = add("b")
    await trio.sleep(2)
    assert sessions.count == 1
    with sessions.in_use("b", used, stream=True):
        await trio.sleep(600)
        assert sessions.count == 1
        add("c")
        assert await sessions.make_room()
    assert ended == ["b"]
