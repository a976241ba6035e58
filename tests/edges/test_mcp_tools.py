"""The tools of the MCP server, called with the client of the SDK."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.edges.mcp_kit import leaves_generators, serving

if TYPE_CHECKING:
    from pathlib import Path

    from mcp import Client

pytestmark = leaves_generators
both = pytest.mark.parametrize("mode", ["auto", "legacy"])


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    assert json.loads(answer.content[0].text) == answer.structured_content
    return answer.structured_content


@both
@pytest.mark.parametrize("way", ["http", "stream"])
async def test_a_job_is_submitted_and_shown(
    mode: str, way: str, tmp_path: Path
) -> None:
    async with serving(tmp_path) as served:
        opened = served.client if way == "http" else served.stream_client
        async with opened(mode) as client:
            made = await called(client, "submit", repo="app", command=["make"])
            shown = await called(client, "show", job=made["id"])
    assert shown["argv"] == ["make"]
    assert shown["origin"] == "mcp"
