"""The look at the MCP server from outside, before a service says that it is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.errors import StoreFailed
from forge_actors.edges.gateway.mcp import probe as probing
from forge_actors.edges.gateway.mcp.probe import McpProbeFailed, probe
from tests.edges.http_kit import serving as serving_http
from tests.edges.mcp_kit import leaves_generators, serving

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = leaves_generators


async def test_a_server_that_works_is_found_so_and_is_left_as_it_was(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as served:
        await probe(served.path)
        assert served.gateway.sessions == 0
        assert served.control.requests == {}


async def test_a_tool_that_fails_is_told(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        served.control.failure = StoreFailed()
        with pytest.raises(McpProbeFailed, match="the tool jobs failed"):
            await probe(served.path)


async def test_a_tool_that_is_missing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "BY_NAME", {**probing.BY_NAME, "more": None})
    async with serving(tmp_path) as served:
        with pytest.raises(McpProbeFailed, match="the tools more are missing"):
            await probe(served.path)


async def test_where_nobody_answers_or_somebody_else_that_is_told(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "s")
    with pytest.raises(McpProbeFailed, match="an agent cannot be served"):
        await probe(path)
    async with serving_http(path):
        with pytest.raises(McpProbeFailed, match="an agent cannot be served"):
            await probe(path)
