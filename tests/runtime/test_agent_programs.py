"""What is known of the programs of agents, and adapters that others add."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.cli.agent_text import found_here, program_lines, unseen
from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.edges.agents import finding
from forge_actors.edges.agents.asking import ask
from forge_actors.runtime.agent_programs import UNKNOWN, AgentPrograms
from forge_actors.runtime.agents import Agents
from forge_actors.testing.agents import NAMES, FakeAgent, install
from tests.runtime.kit import make_repository, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeAgent]:
    folder = tmp_path / "bin"
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    return {name: install(folder, name) for name in NAMES}


async def test_where_a_program_is_is_known_at_once_and_the_rest_is_asked(
    agents: dict[str, FakeAgent], tmp_path: Path
) -> None:
    agents["codex"].play("success", logged_in=False)
    agents["copilot"].path.unlink()
    environ = dict(os.environ)
    programs = AgentPrograms(Agents(tmp_path, environ, environ))
    first = {program.name: program for program in programs.look()}
    assert first["claude"].path == str(agents["claude"].path)
    assert first["claude"].detail == UNKNOWN
    assert first["copilot"].path is None
    assert f"was not found in {tmp_path}/bin:" in first["copilot"].detail
    async with trio.open_nursery() as nursery:
        nursery.start_soon(programs.run)
        while any(program.detail == UNKNOWN for program in programs.look()):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    known = {program.name: program for program in programs.look()}
    assert (known["claude"].version, known["claude"].usable) == ("2.1.197", True)
    assert (known["codex"].version, known["codex"].usable) == ("0.171.0", False)
    assert known["codex"].detail == "not logged in: run codex login"


async def test_the_status_tells_of_each_program(
    agents: dict[str, FakeAgent], tmp_path: Path
) -> None:
    agents["codex"].path.unlink()
    async with running(tmp_path / "home") as runtime:
        status = await runtime.status()
    found = status["agents"]
    assert isinstance(found, list)
    lines = program_lines(found)
    assert list(lines) == ["claude", "codex", "copilot"]
    assert lines["claude"].startswith(str(agents["claude"].path))
    assert lines["codex"].startswith("not found")
    [line] = unseen(found)
    assert line.startswith("the service does not see codex: the program 'codex'")


def test_the_doctor_tells_of_each_program(agents: dict[str, FakeAgent]) -> None:
    agents["claude"].play("success", logged_in=False)
    agents["codex"].path.write_text("#!/bin/sh\necho broken >&2; exit 3\n")
    states, texts = zip(*found_here(), strict=True)
    assert states == ("missing", "missing", "ok")
    assert "not logged in" in texts[0]
    assert "it ended with status 3: broken" in texts[1]
    assert "1.0.102" in texts[2]


def test_a_variable_says_which_program_is_meant(
    agents: dict[str, FakeAgent], tmp_path: Path
) -> None:
    of = finding.adapter("claude")
    other = install(tmp_path / "other", "claude").path
    env = {"PATH": os.environ["PATH"], "FORGE_CLAUDE_EXECUTABLE": str(other)}
    assert finding.find(of, env) == str(other)
    with pytest.raises(Refused, match="is no program"):
        finding.find(of, {"FORGE_CLAUDE_EXECUTABLE": "/nowhere"})


@pytest.mark.parametrize("name", NAMES)
def test_a_program_sees_the_certificates_and_keys_of_its_own_and_no_others(
    name: str, tmp_path: Path
) -> None:
    environ = {
        "SSL_CERT_FILE": "/etc/own.pem",
        "NODE_EXTRA_CA_CERTS": "/etc/own.pem",
        "ANTHROPIC_API_KEY": "a",
        "CODEX_API_KEY": "b",
        "COPILOT_GITHUB_TOKEN": "c",
        "CLAUDECODE": "1",
        "SOMEBODYS_TOKEN": "d",
    }
    agents = Agents(tmp_path, environ, {"PATH": "/bin"})
    seen = agents.environment(finding.adapter(name))
    own = {
        "claude": {"ANTHROPIC_API_KEY"},
        "codex": {"CODEX_API_KEY"},
        "copilot": {"COPILOT_GITHUB_TOKEN"},
    }
    certificates = {"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"}
    assert set(seen) == {"PATH", *certificates, *own[name]}


def test_a_program_of_the_user_is_found_though_the_path_lacks_it(
    tmp_path: Path,
) -> None:
    path = install(tmp_path / ".local" / "bin", "codex").path
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    assert finding.find(finding.adapter("codex"), env) == str(path)


def test_a_program_that_does_not_answer_is_ended_in_time() -> None:
    answer = ask(["sh", "-c", "sleep 4713.5 & sleep 4713.5"], os.environ, 0.2)
    assert answer.problem == "it did not answer within 0 s"


@pytest.fixture
def others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of somebody else, with adapters of its own."""
    folder = tmp_path / "site"
    info = folder / "other_agents-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-agents\n")
    (info / "entry_points.txt").write_text(
        "[forge_actors.agents]\n"
        "shout = other_agents:Shout\n"
        "broken = other_agents:Missing\n"
        "partly = other_agents:Partly\n"
        "clumsy = other_agents:Clumsy\n"
        "careless = other_agents:Careless\n"
    )
    (folder / "other_agents.py").write_text(
        "from forge_actors.edges.agents.command import Command\n"
        "from forge_actors.domain.agents import Invocation\n"
        "class Shout(Command):\n"
        "    name = 'shout'\n"
        "    def invocation(self, run):\n"
        "        return Invocation(('tr', 'a-z', 'A-Z'))\n"
        "class Partly:\n"
        "    name = 'partly'\n"
        "class Clumsy(Command):\n"
        "    name = 'clumsy'\n"
        "    def invocation(self, run):\n"
        "        raise KeyError('clumsy')\n"
        "class Careless(Command):\n"
        "    name = 'careless'\n"
        "    def reader(self, run, **options):\n"
        "        return self\n"
        "    def line(self, line):\n"
        "        yield 1 / 0\n"
        "    def end(self, stdout, stderr):\n"
        "        raise KeyError('careless')\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    finding._entry_points.cache_clear()
    yield folder
    finding._entry_points.cache_clear()


@pytest.mark.usefixtures("others")
async def test_an_adapter_of_others_is_found_by_its_entry_point(
    tmp_path: Path,
) -> None:
    repo = make_repository(tmp_path / "app")
    async with running(tmp_path / "home") as runtime:
        job = await runtime.submit(repo, ["x"], agent="shout", prompt="hello")
        view = await job.wait()
    assert view.state == "succeeded"
    assert view.agent is not None
    assert (view.agent.name, view.agent.text) == ("shout", "HELLO")


@pytest.mark.usefixtures("others")
async def test_the_bugs_of_an_adapter_are_its_jobs_trouble_alone(
    tmp_path: Path,
) -> None:
    repo = make_repository(tmp_path / "app")
    async with running(tmp_path / "home") as runtime:
        jobs = [
            await runtime.submit(repo, ["cat"], agent=name, prompt="hello\n")
            for name in ("clumsy", "careless", "command")
        ]
        views = [await job.wait() for job in jobs]
    clumsy, careless, other = views
    assert clumsy.error is not None
    assert clumsy.error.code == "WORKER_START_FAILED"
    assert "KeyError('clumsy')" in clumsy.error.message
    assert careless.state == "human_attention_required"
    assert careless.error is not None
    assert "without a final event" in careless.error.message
    assert other.state == "succeeded"


@pytest.mark.usefixtures("others")
def test_an_adapter_that_cannot_be_loaded_harms_no_other() -> None:
    with pytest.raises(Refused, match=r"'broken'.*cannot be loaded"):
        finding.adapter("broken")
    with pytest.raises(Refused, match="it has no provider, program"):
        finding.adapter("partly")
    with pytest.raises(
        InvalidInput, match=r"allowed: broken, careless, claude, .*shout"
    ):
        finding.adapter("nobody")
    assert found_here()
