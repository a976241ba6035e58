"""A look at the MCP server from outside, as an agent has it."""

from __future__ import annotations

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from forge_actors.domain.errors import ForgeError
from forge_actors.edges.gateway.mcp.tools import BY_NAME

#: The tool that is called: it changes nothing and costs little.
CALLED, ARGUMENTS = "jobs", {"limit": 1}
#: Nothing is resolved by this name: what is asked goes to the socket.
URL = "http://localhost/mcp"


class McpProbeFailed(ForgeError):
    """An agent would not be served as it should be."""

    code = "MCP_END_TO_END_FAILED"


async def probe(path: str) -> None:
    """Connect to the socket at `path`, list the tools and call one of them.

    Raises:
        McpProbeFailed: it is not as it should be, and what is not.
    """
    try:
        problem = await _problem(path)
    except Exception as error:
        raise McpProbeFailed(f"an agent cannot be served: {_words(error)}") from error
    if problem is not None:
        raise McpProbeFailed(problem)


async def _problem(path: str) -> str | None:
    transport = httpx2.AsyncHTTPTransport(uds=path)
    async with httpx2.AsyncClient(transport=transport) as http:
        streams = streamable_http_client(URL, http_client=http)
        async with Client(streams, mode="auto") as client:
            listed = {tool.name for tool in (await client.list_tools()).tools}
            if missing := sorted(set(BY_NAME) - listed):
                return f"the tools {', '.join(missing)} are missing"
            answer = await client.call_tool(CALLED, ARGUMENTS)
            if answer.is_error:
                return f"the tool {CALLED} failed: {answer.content}"
    return None


def _words(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"
