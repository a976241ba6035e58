"""Jobs of agents, from the request to what is known of them in the end."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors import open_runtime
from forge_actors.actors import supervisor
from forge_actors.client import offline
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.jobs import JobView
from forge_actors.domain.requests import JobQuery
from forge_actors.runtime import agent_runs
from forge_actors.runtime.agent_sessions import session_of
from forge_actors.runtime.views import as_json
from forge_actors.testing.agents import NAMES, FakeAgent, install
from tests.runtime.embedding_kit import (
    home,  # noqa: F401 - a fixture
    repo,  # noqa: F401 - a fixture
)
from tests.runtime.kit import running, settings

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors import Runtime

MARK = "MARK-OF-THE-PROMPT-4711"
KEY = "sk-planted-key-4711"


@pytest.fixture(autouse=True)
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeAgent]:
    """Programs that play agents, on the PATH."""
    folder = tmp_path / "bin"
    found = {name: install(folder, name) for name in NAMES}
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    return found


async def run(runtime: Runtime, repo: Path, agent: str, **options: Any) -> JobView:
    options = {"prompt": f"Do it. {MARK}", **options}
    job = await runtime.submit(repo, options.pop("argv", []), agent=agent, **options)
    return await job.wait()


async def until_printed(runtime: Runtime, job: str, words: bytes) -> None:
    """Wait until an attempt has printed this."""
    told = b""
    while words not in told:
        chunk = await runtime.control.read_log(
            job, "stdout", len(told), limit=100_000, wait=True
        )
        told += chunk.data


@pytest.mark.parametrize("name", NAMES)
async def test_an_agent_job_tells_its_answer_its_session_and_its_usage(
    name: str, repo: Path, home: Path
) -> None:
    async with running(home) as runtime:
        view = await run(runtime, repo, name)
    assert view.state == "succeeded"
    assert view.kind == "agent-run"
    assert view.budgets["execution"] == 12 * 3600
    assert view.agent is not None
    assert view.agent.name == name
    assert view.agent.text == "done"
    assert view.agent.session
    assert view.provider == ("github-copilot" if name == "copilot" else name)
    assert view.agent.usage is not None
    assert view.agent.usage.output_tokens == 7
    assert view.worktree is not None, "each has one"


async def test_the_jobs_read_the_same_where_nothing_serves_them(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    async with running(home) as runtime:
        await run(runtime, repo, "codex")
        agents["claude"].play("budget")
        await run(runtime, repo, "claude")
        agents["claude"].path.unlink()
        served = [as_json(view) for view in await runtime.jobs(JobQuery())]
    assert [job["agent"]["name"] for job in served] == ["claude", "codex"]
    assert offline.jobs(str(home), []) == served


@pytest.mark.parametrize(
    ("scene", "code"),
    [
        ("auth", "PROVIDER_AUTH"),
        ("budget", "BUDGET_SPENT"),
        ("empty", "EMPTY_RESULT"),
        ("error_exit_0", "AGENT_FAILED"),
        ("failed_silently", "EXIT_NONZERO"),
    ],
)
async def test_the_exit_code_alone_does_not_decide(
    scene: str, code: str, repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    agents["claude"].play(scene)
    async with running(home) as runtime:
        view = await run(runtime, repo, "claude")
    assert view.state == "failed"
    assert view.error is not None
    assert view.error.code == code


async def test_an_agent_that_stays_after_its_end_is_ended_and_has_succeeded(
    repo: Path,
    home: Path,
    agents: dict[str, FakeAgent],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agent_runs, "STAY_SECONDS", 0.0)
    agents["codex"].play("stays")
    async with running(home) as runtime:
        view = await run(runtime, repo, "codex")
    assert view.state == "succeeded"
    assert view.signal == "SIGTERM"
    assert view.problem is not None
    assert "after its final event" in view.problem


@pytest.mark.parametrize("name", NAMES)
async def test_a_job_that_was_interrupted_goes_on_in_its_session(
    name: str, repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    agents[name].play("works", wait=0.0)
    async with open_runtime(home, settings(), stop="shutdown") as runtime:
        job = await runtime.submit(
            repo, [], agent=name, prompt=MARK, replay="safe", grace=5
        )
        chunk = await runtime.control.read_log(
            job.id, "stdout", 0, limit=100_000, wait=True
        )
        assert chunk.data
    agents[name].play("echoes")
    async with running(home) as runtime:
        [view] = await runtime.control.wait([job.id])
    assert (view.state, view.attempt) == ("succeeded", 2)
    assert view.agent is not None
    assert view.agent.session
    assert "You were interrupted" in view.agent.text
    assert f"[{view.agent.session}]" in view.agent.text, "the session was resumed"
    if name != "codex":
        assert view.agent.session == session_of(job.id, 1)


async def test_a_session_that_was_not_kept_is_begun_anew(
    repo: Path, home: Path, tmp_path: Path, agents: dict[str, FakeAgent]
) -> None:
    agents["claude"].play("works")
    async with open_runtime(home, settings(), stop="shutdown") as runtime:
        job = await runtime.submit(
            repo, [], agent="claude", prompt=MARK, replay="safe", isolate=False
        )
        await until_printed(runtime, job.id, b"I begin.")
    for file in (tmp_path / ".claude").rglob("*.jsonl"):
        file.unlink()
    agents["claude"].play("echoes")
    async with running(home) as runtime:
        [view] = await runtime.control.wait([job.id])
    assert (view.state, view.attempt) == ("succeeded", 2)
    assert view.agent is not None
    assert view.agent.session == session_of(job.id, 2)
    assert view.agent.text.startswith(MARK)
    assert "It is gone, so look first" in view.agent.text
    assert "I begin." in view.agent.text, "what it said last"
    assert view.agent.text.endswith("[]"), "nothing was resumed"
    assert view.agent.anew


async def test_an_end_after_a_cancel_does_not_undo_it(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    agents["copilot"].play("works")
    async with running(home) as runtime:
        job = await runtime.submit(repo, [], agent="copilot", prompt="Go.")
        chunk = await runtime.control.read_log(
            job.id, "stdout", 0, limit=10_000, wait=True
        )
        assert chunk.data
        view = await job.cancel()
        view = await job.wait()
    assert view.state == "cancelled"
    assert view.agent is not None
    assert view.agent.ok, "it says so, after the stop"


async def test_no_prompt_and_no_key_is_in_what_is_kept(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    agents["claude"].play("leaks")
    async with running(home) as runtime:
        view = await run(runtime, repo, "claude", argv=["--model", "m"])
        told = [event async for event in _all(runtime)]
    assert view.state == "succeeded"
    assert view.argv == ["claude", "--model", "m"]
    shown = json.dumps([view.argv, [event.data for event in told]])
    prompts = list((home / "prompts").iterdir())
    assert [MARK in file.read_text() for file in prompts] == [True]
    assert stat.S_IMODE(prompts[0].stat().st_mode) == 0o600
    assert stat.S_IMODE((home / "prompts").stat().st_mode) == 0o700
    for mark in (MARK, KEY):
        assert mark not in shown
        for file in home.rglob("*"):
            if file.is_file() and file not in prompts:
                assert mark.encode() not in file.read_bytes(), file
    log = next((home / "logs").glob("*.stdout")).read_text()
    assert '"ANTHROPIC_API_KEY"' in log, "the agent had it"
    assert "CLAUDECODE" not in log


async def _all(runtime: Runtime) -> Any:
    last = runtime.control.last_event
    async for event in runtime.events(after=0):
        yield event
        if event.seq >= last:
            return


async def test_a_long_prompt_arrives_whole(repo: Path, home: Path) -> None:
    long = "x" * 3_000_000
    async with running(home) as runtime:
        view = await run(
            runtime, repo, "command", argv=["wc", "-c"], prompt=long, isolate=False
        )
    assert view.state == "succeeded"
    assert view.agent is not None
    assert view.agent.text == "3000000"


async def test_an_agent_runs_in_a_worktree_unless_asked_not_to(
    repo: Path, home: Path
) -> None:
    async with running(home) as runtime:
        own = await run(runtime, repo, "command", argv=["pwd"])
        checkout = await run(runtime, repo, "command", argv=["pwd"], isolate=False)
    assert own.agent is not None
    assert own.agent.text.startswith(str(home / "worktrees"))
    assert checkout.agent is not None
    assert checkout.agent.text == str(repo)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"agent": "clade"}, "no known agent"),
        ({"prompt": " \n"}, "prompt: is empty"),
        ({"prompt": None}, "prompt: is missing"),
        ({"agent": None}, "prompt: is for a job with an agent"),
        ({"stdin": "/dev/null"}, "stdin"),
        ({"pty": True}, "pty"),
        ({"kind": "check"}, "kind: 'check' has no agent"),
        ({"agent": "command"}, "argv"),
        ({"prompt": "\ud800"}, "Unicode"),
    ],
)
async def test_what_does_not_fit_an_agent_is_refused(
    options: dict[str, Any], words: str, repo: Path, home: Path
) -> None:
    async with running(home) as runtime:
        fields = {"agent": "claude", "prompt": "Go.", **options}
        with pytest.raises(InvalidInput, match=words):
            await runtime.submit(repo, [], **fields)


async def test_a_job_whose_program_is_not_there_waits_until_it_is(
    repo: Path,
    home: Path,
    agents: dict[str, FakeAgent],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervisor, "IDLE_PASS_SECONDS", 0.05)
    folder = agents["codex"].path.parent
    agents["codex"].path.unlink()
    async with running(home) as runtime:
        waits = await runtime.submit(repo, [], agent="codex", prompt="Go.")
        other = await runtime.submit(repo, [], agent="claude", prompt="Go.")
        assert (await other.wait()).state == "succeeded"
        view = await waits.show()
        assert view.state == "queued"
        assert view.waiting is not None
        assert (view.waiting["kind"], view.waiting["resource"]) == ("agent", "codex")
        why = await waits.why()
        assert "It waits for an agent program: the program 'codex'" in why
        assert f"was not found in {folder}" in why
        install(folder, "codex")
        assert (await waits.wait()).state == "succeeded"


async def test_a_job_that_waits_for_its_program_waits_for_it_after_a_restart(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    folder = agents["codex"].path.parent
    agents["codex"].path.unlink()
    async with running(home) as runtime:
        job = await runtime.submit(repo, [], agent="codex", prompt="Go.")
    async with running(home) as runtime:
        view = await runtime.control.job(job.id)
        assert view.waiting is not None
        assert view.waiting["kind"] == "agent"
    install(folder, "codex")
    async with running(home) as runtime:
        [view] = await runtime.control.wait([job.id])
    assert view.state == "succeeded"
