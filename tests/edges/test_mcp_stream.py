"""MCP over one stream: what an agent may send, and what it cannot do to others."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
import trio

from forge_actors.edges.gateway.mcp import stream as stream_module
from forge_actors.edges.gateway.mcp.caller import MAX_CALLS
from forge_actors.edges.gateway.mcp.sessions import SessionLimits, Sessions
from tests.edges.http_kit import connect, read_all
from tests.edges.mcp_kit import called, leaves_generators, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.edges.mcp_kit import Served

pytestmark = leaves_generators
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "0"},
}


class Talk:
    """Lines to a server and back."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._data = b""

    async def ask(self, id_: int | None, method: str, **params: Any) -> None:
        told: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if id_ is not None:
            told["id"] = id_
        await self.stream.send_all(json.dumps(told).encode() + b"\n")

    async def call(self, id_: int, tool: str, **arguments: Any) -> None:
        await self.ask(id_, "tools/call", name=tool, arguments=arguments)

    async def next(self) -> Any:
        while b"\n" not in self._data:
            piece = await self.stream.receive_some()
            assert piece, "it was closed"
            self._data += piece
        line, _, self._data = self._data.partition(b"\n")
        return json.loads(line)


@asynccontextmanager
async def talking(served: Served) -> AsyncIterator[Talk]:
    async with await connect(served.stream_path) as stream:
        talk = Talk(stream)
        await talk.ask(0, "initialize", **INITIALIZE)
        assert (await talk.next())["id"] == 0
        await talk.ask(None, "notifications/initialized")
        yield talk


async def test_what_was_asked_before_the_end_is_answered(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, talking(served) as talk:
        for number in range(1, 4):
            await talk.call(number, "repositories")
        await talk.stream.send_eof()
        assert {(await talk.next())["id"] for _ in range(3)} == {1, 2, 3}
        assert await talk.stream.receive_some() == b""
        assert served.gateway.sessions == 0


async def test_a_wait_does_not_outlive_its_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "LAST_SECONDS", 0.05)
    async with serving(tmp_path) as served, talking(served) as talk:
        await talk.call(1, "submit", repo="app", command=["x"])
        await talk.next()
        await talk.call(2, "wait", jobs=["j000001"])
        await served.control.until_held(1)
        await talk.stream.send_eof()
        await served.control.until_held(0)
        await read_all(talk.stream)


async def test_a_wait_that_is_cancelled_ends_and_leaves_its_place(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as served, talking(served) as talk:
        await talk.call(1, "submit", repo="app", command=["x"])
        await talk.next()
        for number in range(2, 2 + 2 * MAX_CALLS):
            await talk.call(number, "wait", jobs=["j000001"])
            await served.control.until_held(1)
            await talk.ask(None, "notifications/cancelled", requestId=number)
            await served.control.until_held(0)
        await talk.call(1000, "repositories")
        assert (await talk.next())["id"] == 1000


async def test_only_so_many_requests_are_in_progress(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, talking(served) as talk:
        await talk.call(1, "submit", repo="app", command=["x"])
        await talk.next()
        for number in range(2, 3 + MAX_CALLS):
            await talk.call(number, "wait", jobs=["j000001"])
        refused = await talk.next()
        assert refused["id"] == 2 + MAX_CALLS
        assert "in progress" in refused["error"]["message"]
        served.control.end("j000001")
        for _ in range(MAX_CALLS):
            assert "result" in await talk.next()


async def test_an_id_names_one_request_at_a_time(tmp_path: Path) -> None:
    one = SessionLimits(sessions=1)
    async with serving(tmp_path, one) as served, talking(served) as talk:
        await talk.call(1, "submit", repo="app", command=["x"])
        await talk.next()
        await talk.call(2, "wait", jobs=["j000001"])
        await served.control.until_held(1)
        for _ in range(2):
            await talk.call(2, "repositories")
            refused = await talk.next()
            assert refused["id"] is None, "its answer is that of the first one"
            assert "another id" in refused["error"]["message"]
        served.control.end("j000001")
        assert (await talk.next())["id"] == 2
        # It waits for nothing any more, so it makes room for another one.
        async with talking(served):
            assert served.gateway.sessions == 1


@pytest.mark.parametrize(
    "line", [b"no json", b"[]", b'{"jsonrpc":"2.0"}', b"\xff\xfe", b"[" * 5000]
)
async def test_nonsense_is_refused_and_the_session_goes_on(
    line: bytes, tmp_path: Path
) -> None:
    async with serving(tmp_path) as served, talking(served) as talk:
        await talk.stream.send_all(line + b"\n\n")
        assert "error" in await talk.next()
        await talk.call(1, "repositories")
        assert (await talk.next())["id"] == 1


async def test_a_message_that_has_no_end_is_refused(tmp_path: Path) -> None:
    limits = SessionLimits(message_bytes=10_000)
    async with serving(tmp_path, limits) as served, talking(served) as talk:
        await talk.stream.send_all(b"x" * 200_000)
        assert "at most 10000 bytes" in (await talk.next())["error"]["message"]
        assert await read_all(talk.stream) == b""


async def test_an_agent_that_takes_no_answer_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten, forget = trio.Event(), Sessions.forget

    def forgetting(sessions: Sessions, name: str) -> None:
        forget(sessions, name)
        forgotten.set()

    monkeypatch.setattr(Sessions, "forget", forgetting)
    limits = SessionLimits(write_timeout=0.2)
    async with serving(tmp_path, limits) as served, talking(served) as talk:
        # Their answers fill the socket, and nobody reads a word of them.
        with suppress(trio.BrokenResourceError):  # it may be quick to give up
            for number in range(200):
                await talk.ask(number, "tools/list")
        await forgotten.wait()
        async with talking(served) as other:
            await other.call(1, "repositories")
            assert (await other.next())["id"] == 1


async def test_streams_share_the_places_with_all_sessions(tmp_path: Path) -> None:
    limits = SessionLimits(sessions=2)
    async with (
        serving(tmp_path, limits) as served,
        talking(served) as first,
        talking(served) as second,
    ):
        await first.call(1, "repositories")
        await first.next()
        async with served.client("legacy") as third:
            # The second was idle for longest.
            assert await read_all(second.stream) == b""
            await called(third, "repositories")
            await first.call(2, "repositories")
            assert (await first.next())["id"] == 2


async def test_a_stop_ends_every_stream(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, talking(served) as talk:
        served.gateway.stop()
        await read_all(talk.stream)
        assert served.gateway.sessions == 0
