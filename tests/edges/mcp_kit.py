"""What the tests of the MCP server share: a server of a fake runtime, and clients."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
import trio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from forge_actors.client.home import prepare_socket_path
from forge_actors.edges.gateway.front import Front
from forge_actors.edges.gateway.handling import handler, holds
from forge_actors.edges.gateway.listeners import unix_listener
from forge_actors.edges.gateway.mcp.gateway import McpGateway
from forge_actors.edges.gateway.messages import Limits
from forge_actors.edges.gateway.server import Server
from forge_actors.testing.control import FakeControl

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from forge_actors.edges.gateway.mcp.sessions import SessionLimits

#: The SDK and its HTTP client leave generators to the collector, which trio tells of.
leaves_generators = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <async_generator object"
    " (EventSource|Response|.*aiter)"
)


class Served:
    """A server, the fake runtime behind it, and where it is."""

    def __init__(
        self, folder: Path, control: FakeControl, gateway: McpGateway, server: Server
    ) -> None:
        self.control = control
        self.gateway = gateway
        self.server = server
        self.home = str(folder)
        self.path = prepare_socket_path(self.home)
        self.stream_path = prepare_socket_path(self.home, "mcp.sock")

    def http(self) -> httpx2.AsyncClient:
        return http_client(self.path)

    @asynccontextmanager
    async def client(self, mode: Any = "auto") -> AsyncGenerator[Client, None]:
        async with self.http() as http:
            transport = streamable_http_client("http://localhost/mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                yield client

    @asynccontextmanager
    async def stream_client(
        self, mode: Any = "auto", *, introduction: dict[str, Any] | None = None
    ) -> AsyncGenerator[Client, None]:
        stream = await trio.open_unix_socket(self.stream_path)
        if introduction is not None:
            line = json.dumps({"forge_actors": introduction})
            await stream.send_all(line.encode() + b"\n")
        async with Client(_over(stream), mode=mode) as client:
            yield client


def http_client(path: str) -> httpx2.AsyncClient:
    transport = httpx2.AsyncHTTPTransport(uds=path)
    return httpx2.AsyncClient(transport=transport, timeout=httpx2.Timeout(20))


@asynccontextmanager
async def serving(
    folder: Path, limits: SessionLimits | None = None, drain: float = 1.0
) -> AsyncGenerator[Served, None]:
    control = FakeControl()
    gateway = McpGateway(control, "0", limits)
    front = Front()
    front.add("mcp", gateway.handler, gateway.holds)
    front.add("v1", handler(control), holds)
    server = Server(front, holds=front.holds, limits=Limits(drain=drain))
    served = Served(folder, control, gateway, server)
    async with trio.open_nursery() as nursery:
        await nursery.start(gateway.run, [unix_listener(served.stream_path)])
        await nursery.start(server.serve, [unix_listener(served.path)])
        yield served
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def _over(stream: trio.SocketStream) -> AsyncGenerator[Any, None]:
    """A transport of the SDK on one stream, a message a line."""
    into, in_ = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    out, from_ = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        data = b""
        async with into:
            async for piece in stream:
                *lines, data = (data + piece).split(b"\n")
                for line in lines:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    await into.send(SessionMessage(message))

    async def write() -> None:
        async with from_:
            async for sent in from_:
                text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                await stream.send_all(text.encode() + b"\n")

    async with stream, trio.open_nursery() as nursery:
        nursery.start_soon(read)
        nursery.start_soon(write)
        yield in_, out
        nursery.cancel_scope.cancel()
    for each in (in_, out):
        await each.aclose()


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    """What a tool answers, if it does."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    assert json.loads(answer.content[0].text) == answer.structured_content
    return answer.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> Any:
    """The error that a tool answers."""
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error, answer.content
    assert json.loads(answer.content[0].text) == answer.structured_content
    return answer.structured_content["error"]


HEADERS = {"accept": "application/json, text/event-stream"}
URL = "http://localhost/mcp"


def message(method: str, number: int | None = 1, **params: object) -> dict[str, object]:
    told: dict[str, object] = {"jsonrpc": "2.0", "method": method, "params": params}
    return told if number is None else {**told, "id": number}


INITIALIZE = message(
    "initialize",
    protocolVersion="2025-06-18",
    capabilities={},
    clientInfo={"name": "test", "version": "0"},
)


async def opened(
    http: httpx2.AsyncClient, headers: dict[str, str] = HEADERS
) -> dict[str, str]:
    """The headers of a new session."""
    answer = await http.post(URL, json=INITIALIZE, headers=headers)
    assert answer.status_code == 200, answer.text
    session = {**HEADERS, "mcp-session-id": answer.headers["mcp-session-id"]}
    done = message("notifications/initialized", None)
    assert (await http.post(URL, json=done, headers=session)).status_code == 202
    return session
