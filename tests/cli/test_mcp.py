"""The program that agents start: it carries bytes to the service, and nothing else."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tomllib
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import trio
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from forge_actors.cli import main as program
from forge_actors.testing.service import fake_service
from tests.cli.test_start import HEAVY, seconds
from tests.edges.mcp_kit import called, leaves_generators, refused, serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell
    from tests.edges.mcp_kit import Served

pytestmark = leaves_generators
RELAY = [sys.executable, "-m", "forge_actors", "mcp"]


def program_of(served: Served, **variables: str) -> StdioServerParameters:
    env = {"PATH": os.environ["PATH"], "HOME": served.home, **variables}
    args = [*RELAY[1:], "--home", served.home]
    return StdioServerParameters(command=RELAY[0], args=args, env=env, cwd=served.home)


async def ask_through(started: StdioServerParameters, mode: Any) -> list[str]:
    async with Client(started, mode=mode) as client:
        assert len((await client.list_tools()).tools) > 10
        made = await called(client, "submit", command=["make"])
        error = await refused(client, "show", job="nowhere")
        assert error["code"] == "NOT_FOUND"
        return [made["id"]]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("backend", ["trio", "asyncio"])
async def test_an_agent_uses_the_tools_through_it(
    backend: str, mode: str, tmp_path: Path
) -> None:
    async with serving(tmp_path) as served:
        started = program_of(served)
        if backend == "trio":
            [job] = await ask_through(started, mode)
        else:
            asking = partial(ask_through, started, mode)
            run = partial(anyio.run, asking, backend="asyncio")
            [job] = await trio.to_thread.run_sync(run)
        request = served.control.requests[job]
    assert (request.origin, request.parent) == ("mcp", None)
    # It runs where the agent was started.
    assert request.repo == request.cwd == os.path.realpath(tmp_path)


async def test_an_agent_that_is_a_job_says_so(tmp_path: Path) -> None:
    job = {"FORGE_JOB_ID": "j7", "FORGE_ATTEMPT": "2", "FORGE_FENCE": "9"}
    async with serving(tmp_path) as served:
        for home, parents in ((served.home, ["j7"]), ("/elsewhere", [])):
            started = program_of(served, **job, FORGE_CONTROLLER_HOME=home)
            [made] = await ask_through(started, "legacy")
            request = served.control.requests[made]
            found = [] if request.parent is None else [request.parent.job]
            assert found == parents


async def test_a_home_with_a_long_path_has_its_socket_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, short = tmp_path / ("long" * 30), tmp_path / "s"
    home.mkdir()
    short.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    async with serving(home) as served:
        assert served.home not in served.stream_path
        await ask_through(program_of(served), "auto")


async def test_it_ends_when_the_agent_closes_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        command = [*RELAY, "--home", served.home]
        done = await trio.run_process(command, stdin=b"", capture_stdout=True)
        assert done.returncode == 0
        assert served.gateway.sessions == 0


class Shift:
    """A server in a task of its own, from `begin` until `end`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._leave, self._left = trio.Event(), trio.Event()

    async def begin(self, *, task_status: trio.TaskStatus[Served]) -> None:
        async with serving(self._folder) as served:
            task_status.started(served)
            await self._leave.wait()
        self._left.set()

    async def end(self) -> None:
        self._leave.set()
        await self._left.wait()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_session_goes_on_at_the_next_service(
    mode: Any, tmp_path: Path
) -> None:
    first, second = Shift(tmp_path), Shift(tmp_path)
    lost: list[Any] = []
    async with trio.open_nursery() as nursery:
        served = await nursery.start(first.begin)
        async with Client(program_of(served), mode=mode) as client:
            made = await called(client, "submit", command=["make"])

            async def wait() -> None:
                lost.append(await client.call_tool("wait", {"jobs": [made["id"]]}))

            async with trio.open_nursery() as waiting:
                waiting.start_soon(wait)
                await served.control.until_held(1)
                await first.end()
            # Nobody serves now: what was asked is answered, and so is what is asked.
            assert lost[0].is_error
            assert "not known" in lost[0].content[0].text
            answer = await client.call_tool("jobs", {})
            assert answer.is_error
            assert "no service runs" in answer.content[0].text
            with pytest.raises(MCPError, match="no service runs"):
                await client.list_resources()
            served = await nursery.start(second.begin)
            assert (await called(client, "jobs"))["jobs"] == []
            made = await called(client, "submit", command=["make"])
            request = served.control.requests[made["id"]]
            assert request.cwd == os.path.realpath(tmp_path)
            await client.list_resources()
        await second.end()


def test_without_a_service_it_says_so_in_a_line(shell: Shell) -> None:
    status, out, err = shell.now("mcp")
    assert (status, out) == (4, "")
    assert "no service runs" in err
    assert err.count("\n") == 1


async def test_a_service_without_the_extra_says_what_to_do(
    shell: Shell, tmp_path: Path
) -> None:
    async with fake_service(tmp_path):
        status, out, err = await shell("mcp")
    assert (status, out) == (3, "")
    assert "serves no agents: it is none that runs" in err


@pytest.mark.parametrize("name", ["claude", "codex", "copilot"])
def test_the_configuration_starts_it(
    name: str, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/__main__.py"])
    status, out, _ = shell.now("mcp", "--print-config", name)
    assert status == 0
    if name == "codex":
        entry = tomllib.loads(out)["mcp_servers"]["forge-actors"]
        assert "FORGE_JOB_ID" in entry["env_vars"]
    else:
        entry = json.loads(out)["mcpServers"]["forge-actors"]
    words = [entry["command"], *entry["args"]]
    assert words == [*RELAY, "--home", str(tmp_path)]


def test_the_configuration_names_the_installed_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "forge-actors"
    installed.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(installed)])
    assert program.main(["mcp", "--print-config", "claude"]) == 0
    entry = json.loads(capsys.readouterr().out)["mcpServers"]["forge-actors"]
    assert (entry["command"], entry["args"]) == (str(installed), ["mcp"])


def test_it_loads_nothing_that_is_heavy(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"  # an editable install may have loaded some
        "from forge_actors.cli.main import main\n"
        f"status = main(['mcp', '--home', {str(tmp_path)!r}])\n"
        f"print(*sorted({HEAVY!r} & (set(sys.modules) - before)))\n"
        "sys.exit(status)"
    )
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "mcp.sock"))
        listening.listen()
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdin is not None
        with listening.accept()[0] as connection:
            process.stdin.close()
            with connection.makefile("rb") as told:
                introduction = json.loads(told.readline())["forge_actors"]
                assert told.read() == b""
        assert introduction == {"folder": os.getcwd(), "parent": None}
        assert process.stdout is not None
        assert process.stdout.read() == b"\n"
        assert process.wait() == 0
        process.stdout.close()


def test_it_starts_as_fast_as_any_verb(tmp_path: Path) -> None:
    python, environment = sys.executable, dict(os.environ)
    relay = [python, "-m", "forge_actors", "mcp", "--home", str(tmp_path)]
    empty = [seconds([python, "-c", "pass"], environment) for _ in range(7)]
    ours = [seconds(relay, environment) for _ in range(7)]
    # The least of each is what it costs; the rest is what others did meanwhile.
    assert min(ours) <= 5 * min(empty)
