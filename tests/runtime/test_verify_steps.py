"""What comes between the work of an agent and the check of it, and into the rounds."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors import open_runtime
from forge_actors.actors import supervisor
from forge_actors.domain.requests import JobQuery
from forge_actors.testing.agents import FakeAgent
from tests.runtime.agents_kit import agents  # noqa: F401 - a fixture
from tests.runtime.embedding_kit import (
    home,  # noqa: F401 - a fixture
    repo,  # noqa: F401 - a fixture
)
from tests.runtime.kit import running, settings
from tests.runtime.test_questions import attend

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors import Runtime

#: Passes from its second run on; it leaves the work as it is.
SECOND = "echo tried >> $HOME/tries; echo MARK-4711; test $(wc -l < $HOME/tries) -ge 2"


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


async def until(runtime: Runtime, job: str, kind: str, times: int = 1) -> None:
    """Wait until this was told of a job so often."""
    async for event in runtime.events(after=0):
        times -= (event.job, event.kind) == (job, kind)
        if not times:
            return


def open_pipe(path: Path) -> None:
    """Let whoever reads from it go on, or fail if nobody does."""
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))


async def test_a_check_waits_for_its_own_token_while_other_agents_work(
    repo: Path, home: Path, pipe: Path
) -> None:
    limits = {"heavy_checks": 1, "agents": 1}
    async with running(home, limits=limits) as runtime:
        heavy = await runtime.submit(
            repo, ["sh", "-c", f"cat {pipe}"], kind="check", read_only=True
        )
        await until(runtime, heavy.id, "job_running")
        job = await runtime.submit(
            repo, [], agent="claude", prompt="Go.", verify="exit 0", isolate=True
        )
        await until(runtime, job.id, "job_waiting_for_heavy_check")
        view = await job.show()
        assert view.state == "waiting_for_heavy_check"
        assert view.waiting is not None
        assert view.waiting["resource"] == "heavy_checks"
        sentence = await job.why()
        assert sentence.startswith(
            "Its agent has worked, and the check of that (exit 0) waits for a token:"
            f" 1 of 1 heavy checks are in use (by {heavy.id})"
        )
        [listed] = [v for v in await runtime.jobs(JobQuery()) if v.id == job.id]
        assert listed.state == "waiting_for_heavy_check"
        # It has given back the token of its agent.
        other = await runtime.submit(repo, [], agent="claude", prompt="Go.")
        assert (await other.wait()).state == "succeeded"
        open_pipe(pipe)
        assert (await job.wait()).state == "succeeded"


async def test_nobody_comes_into_a_checkout_before_its_work_is_checked(
    repo: Path, home: Path, pipe: Path
) -> None:
    async with running(home, limits={"heavy_checks": 1}) as runtime:
        heavy = await runtime.submit(
            repo, ["sh", "-c", f"cat {pipe}"], kind="check", read_only=True
        )
        await until(runtime, heavy.id, "job_running")
        work = ["sh", "-c", "echo mine > work.txt"]
        job = await runtime.submit(
            repo,
            work,
            agent="command",
            prompt="Go.",
            verify="grep mine work.txt",
            isolate=False,
        )
        await until(runtime, job.id, "job_waiting_for_heavy_check")
        other = await runtime.submit(
            repo, ["sh", "-c", "echo other > work.txt"], priority="P0"
        )
        assert job.id in await other.why()
        open_pipe(pipe)
        assert (await job.wait()).state == "succeeded"
        assert (await other.wait()).state == "succeeded"


async def test_a_check_that_was_interrupted_is_repeated_and_is_no_round(
    repo: Path, home: Path, pipe: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    check = f"if test -e {gate}; then exit 0; fi; touch {gate}; cat {pipe}"
    async with open_runtime(home, settings(), stop="shutdown") as runtime:
        job = await runtime.submit(
            repo, [], agent="codex", prompt="Go.", verify=check, isolate=True
        )
        await until(runtime, job.id, "job_running", times=2)
    async with running(home) as runtime:
        [view] = await runtime.control.wait([job.id])
    assert (view.state, view.attempt) == ("succeeded", 3)
    assert view.verify is not None
    assert (view.verify["round"], view.verify["checks"]) == (0, [2, 3])


async def test_a_round_that_was_interrupted_goes_on_in_its_session(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    async with open_runtime(home, settings(), stop="shutdown") as runtime:
        agents["codex"].play("echoes")
        check = f"cp {home}/../works.scene {home}/../bin/codex.scene; {SECOND}"
        os.makedirs(home, exist_ok=True)
        played = agents["codex"].path.with_name("codex.scene")
        agents["codex"].play("works")
        played.rename(f"{home}/../works.scene")
        agents["codex"].play("echoes")
        job = await runtime.submit(
            repo, [], agent="codex", prompt="Go.", verify=check, replay="safe"
        )
        # Its work, the check, and the round, whose session is known before its program
        # has got what it was asked: then it says something.
        await until(runtime, job.id, "agent_session", times=2)
        said, read = b"", partial(runtime.control.read_log, limit=4096, wait=True)
        while b"turn.started" not in said:
            chunk = await read(job.id, "stdout", len(said), attempt=3)
            assert chunk.data, "it ended"
            said += chunk.data
    agents["codex"].play("echoes")
    async with running(home) as runtime:
        [view] = await runtime.control.wait([job.id])
    assert view.state == "succeeded"
    assert view.verify is not None
    assert (view.verify["round"], view.verify["checks"]) == (1, [2, 5])
    assert view.agent is not None
    assert "You were interrupted" in view.agent.text
    assert "MARK-4711" in view.agent.text
    assert view.agent.text.endswith(f"[{view.agent.session}]")


@pytest.mark.parametrize("waits", [True, False])
async def test_a_check_can_be_cancelled(
    waits: bool, repo: Path, home: Path, pipe: Path
) -> None:
    async with running(home, limits={"heavy_checks": 1}) as runtime:
        heavy = None
        if waits:
            heavy = await runtime.submit(
                repo, ["sh", "-c", f"cat {pipe}"], kind="check", read_only=True
            )
            await until(runtime, heavy.id, "job_running")
        job = await runtime.submit(
            repo, [], agent="claude", prompt="Go.", verify="sleep 4711"
        )
        if waits:
            await until(runtime, job.id, "job_waiting_for_heavy_check")
        else:
            await until(runtime, job.id, "job_running", times=2)
            assert "The check of what its agent did (sleep 4711)" in await job.why()
        await runtime.control.cancel(job.id)
        view = await job.wait()
        assert view.state == "cancelled"
        # What it was kept for is free.
        assert (await (await runtime.submit(repo, ["true"])).wait()).state == (
            "succeeded"
        )
        if heavy is not None:
            open_pipe(pipe)
            await heavy.wait()


async def test_what_a_person_answered_is_not_asked_again_in_a_round(
    repo: Path,
    home: Path,
    agents: dict[str, FakeAgent],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context: Any = partial(attend, supervisor.Context)
    monkeypatch.setattr(supervisor, "Context", context)
    agents["claude"].play("asks", text="Which?")
    async with running(home) as runtime:
        job = await runtime.submit(
            repo, [], agent="claude", prompt="Go.", verify=SECOND
        )
        await until(runtime, job.id, "job_waiting_for_approval")
        await runtime.control.answer(job.id, "The second one.")
        view = await job.wait()
    assert view.state == "succeeded"
    assert view.agent is not None
    assert "MARK-4711" in view.agent.text
    assert "The second one." not in view.agent.text


async def test_a_round_waits_for_a_closed_account_and_keeps_its_place(
    repo: Path,
    home: Path,
    agents: dict[str, FakeAgent],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a provider refuses counts neither as an attempt nor as a round."""
    context: Any = partial(attend, supervisor.Context)
    monkeypatch.setattr(supervisor, "Context", context)
    agents["claude"].play("echoes")
    scene = agents["claude"].path.with_name("claude.scene")
    agents["claude"].play("auth")
    scene.rename(scene.with_name("auth"))
    agents["claude"].play("echoes")
    folder = scene.parent
    check = f"cp {folder}/auth {scene}; {SECOND}"
    async with running(home) as runtime:
        job = await runtime.submit(repo, [], agent="claude", prompt="Go.", verify=check)
        # Its account is closed, as it is not logged in.
        async for event in runtime.events(after=0):
            if event.kind == "provider_closed":
                break
        agents["claude"].play("echoes")
        await runtime.control.resume("provider:claude")
        view = await job.wait()
    assert (view.state, view.refused) == ("succeeded", 1)
    assert view.verify is not None
    assert (view.verify["round"], view.verify["checks"]) == (1, [2, 5])
    assert view.agent is not None
    assert "MARK-4711" in view.agent.text
