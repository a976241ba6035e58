"""The real agent programs keep the contract too, on a model service of ours.

`tox -e agents` installs them and says where they are. They get a home of their own and
dummy keys, and reach nothing but the loopback.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.cli.mcp import VARIABLES
from forge_actors.edges.agents.finding import adapter
from forge_actors.testing.agents import NAMES
from forge_actors.testing.agents.model_api import ModelApi, serving
from forge_actors.testing.agents.running import Ran, environment, running
from forge_actors.testing.agents_contract import CHECKS, PATIENCE
from tests.edges.mcp_kit import serving as mcp_serving
from tests.real_agents import BIN, MARKS, arguments, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.testing.agents_contract import Check, Scene

pytestmark = MARKS


class RealStage:
    """See `agents_contract.Stage`."""

    def __init__(self, folder: Path, name: str, api: ModelApi) -> None:
        assert BIN is not None, "no test runs without it"
        self.adapter = adapter(name)
        self.program = Path(BIN) / name
        self.folder = folder / "work"
        self.folder.mkdir()
        self.api = api
        self.arguments = arguments(name, api)
        self.env = environment(folder, TZ="UTC", **variables(name, api))

    def play(self, scene: Scene) -> None:
        self.api.play(scene)

    async def at_work(self, ran: Ran) -> None:
        await trio.to_thread.run_sync(self.api.asked.wait, PATIENCE)
        if self.adapter.name == "codex":
            await ran.printed(b"turn.started")

    def let_go(self) -> None:
        self.api.let_go.set()


@pytest.fixture
def api() -> Iterator[ModelApi]:
    with serving() as served:
        yield served


def _within(seconds: float, check: partial[object]) -> None:
    async def main() -> None:
        with trio.fail_after(seconds):
            await check()  # type: ignore[misc]

    trio.run(main)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_the_real_program_keeps_the_contract(
    name: str, check: Check, tmp_path: Path, api: ModelApi
) -> None:
    _within(PATIENCE, partial(check, RealStage(tmp_path, name, api)))


def test_the_real_codex_tells_when_its_limit_ends(
    tmp_path: Path, api: ModelApi
) -> None:
    stage = RealStage(tmp_path, "codex", api)
    api.play("limit")
    api.resets_at = (int(time.time()) // 60 + 90) * 60

    async def run() -> None:
        async with running(
            stage.adapter,
            stage.program,
            "Go.",
            cwd=stage.folder,
            env=stage.env,
            arguments=stage.arguments,
        ) as ran:
            pass
        assert ran.report.limit is not None, ran.stdout
        assert ran.report.limit.kind == "usage"
        assert ran.report.limit.retry_at == api.resets_at

    _within(PATIENCE, partial(run))


@pytest.mark.parametrize("name", ["claude", "codex"])
async def test_the_real_program_calls_a_tool_through_the_one_that_it_starts(
    name: str, tmp_path: Path, api: ModelApi
) -> None:
    stage = RealStage(tmp_path, name, api)
    api.tool = ("actors__submit", {"command": ["make", "check"], "kind": "check"})
    api.play("tool")
    async with mcp_serving(tmp_path) as served:
        parent = {"FORGE_JOB_ID": "j7", "FORGE_ATTEMPT": "1", "FORGE_FENCE": "3"}
        async with running(
            stage.adapter,
            stage.program,
            "Go.",
            cwd=stage.folder,
            env={**stage.env, **parent, "FORGE_CONTROLLER_HOME": served.home},
            arguments=(*stage.arguments, *_with_tools(name, tmp_path, served.home)),
        ) as ran:
            pass
        [(job, request)] = served.control.requests.items()
    assert ran.good, ran.stdout
    assert (request.argv, request.kind) == (["make", "check"], "check")
    # It is started where the agent is, and is a part of the same job.
    assert request.repo == str(stage.folder.resolve())
    assert request.parent is not None
    assert (request.origin, request.parent.fence) == ("job:j7", 3)
    assert job in json.dumps(api.tool_answers)


def _with_tools(name: str, folder: Path, home: str) -> tuple[str, ...]:
    """The arguments with which a program has our tools, and may use one."""
    words = ["-m", "forge_actors", "mcp", "--home", home]
    if name == "claude":
        entry = {"command": sys.executable, "args": words}
        config = folder / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"forge-actors": entry}}))
        return (
            *("--mcp-config", str(config), "--strict-mcp-config"),
            *("--allowedTools", "mcp__forge-actors__submit"),
        )
    server = "mcp_servers.forge-actors"
    settings = {
        "model": "m",
        f"{server}.command": sys.executable,
        f"{server}.args": json.dumps(words),
        f"{server}.env_vars": json.dumps(list(VARIABLES)),
        f"{server}.default_tools_approval_mode": "approve",
    }
    return tuple(
        part for key, value in settings.items() for part in ("-c", f"{key}={value}")
    )
