"""Agents that are refused, with real programs that play them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import JobQuery
from tests.runtime.embedding_kit import (
    home,  # noqa: F401 - a fixture
    repo,  # noqa: F401 - a fixture
)
from tests.runtime.kit import running
from tests.runtime.test_agent_jobs import agents  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.testing.agents import FakeAgent


async def test_a_job_at_a_limit_waits_for_its_end_in_its_worktree_and_session(
    repo: Path,
    home: Path,
    agents: dict[str, FakeAgent],
) -> None:
    reset = int(time.time()) + 10
    agents["claude"].play("limit", reset=reset)
    async with running(home) as runtime:
        job = await runtime.submit(repo, [], agent="claude", prompt="Go.")
        async for event in runtime.events(after=0):
            if event.kind == "job_waiting_for_limit":
                break
        agents["claude"].play("success")
        parked = await job.show()
        assert (parked.state, parked.refused) == ("waiting_for_limit", 1)
        assert parked.worktree is not None
        assert parked.waiting is not None
        assert parked.waiting["kind"] == "limit"
        status = await runtime.control.status()
        assert status["providers"]["claude"]["closed"]["reason"] == "usage"
        assert "limit" in await job.why()
        [listed] = await runtime.jobs(JobQuery())
        assert listed.state == "waiting_for_limit"
        view = await job.wait()
    assert (view.state, view.attempt, view.refused) == ("succeeded", 2, 1)
    assert time.time() >= reset
    assert view.worktree is not None
    assert view.worktree["path"] == parked.worktree["path"]


async def test_of_several_agents_the_first_that_can_does_the_job(
    repo: Path,
    home: Path,
    agents: dict[str, FakeAgent],
) -> None:
    agents["claude"].play("limit", reset=int(time.time()) + 3600)
    async with running(home) as runtime:
        fields = {"agent": "claude,codex", "prompt": "Go."}
        first = await runtime.submit(repo, [], **fields)
        view = await first.wait()
        assert (view.state, view.provider, view.attempt) == ("succeeded", "codex", 2)
        assert view.agent is not None
        assert (view.agent.name, view.argv) == ("codex", ["codex"])
        # The next one does not try what is closed.
        view = await (await runtime.submit(repo, [], **fields)).wait()
        assert (view.state, view.provider, view.attempt) == ("succeeded", "codex", 1), (
            view.error
        )
        await runtime.control.resume("provider:claude")
        agents["claude"].play("success")
        view = await (await runtime.submit(repo, [], **fields)).wait()
        assert (view.state, view.provider) == ("succeeded", "claude")
        told = []
        async for event in runtime.events(after=0):
            if event.kind == "job_redirected":
                told.append((event.data["before"], event.data["agent"]))
            if event.kind == "job_succeeded" and event.job == view.id:
                break
        assert told == [("claude", "codex"), ("claude", "codex")]


async def test_one_whose_program_is_not_there_is_passed_over(
    repo: Path,
    home: Path,
    agents: dict[str, FakeAgent],
) -> None:
    agents["claude"].path.unlink()
    async with running(home) as runtime:
        job = await runtime.submit(repo, [], agent="claude,codex", prompt="Go.")
        view = await job.wait()
    assert (view.state, view.provider, view.attempt) == ("succeeded", "codex", 1)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"agent": "claude,nobody"}, "no known agent"),
        ({"agent": "claude,claude"}, "twice"),
        ({"agent": "claude,command"}, "cannot take the place"),
        ({"agent": "claude,codex", "provider": "claude"}, "one agent"),
    ],
)
async def test_agents_that_cannot_stand_in_for_each_other_are_refused(
    fields: dict[str, Any], words: str, repo: Path, home: Path
) -> None:
    async with running(home) as runtime:
        with pytest.raises(InvalidInput, match=words):
            await runtime.submit(repo, [], prompt="Go.", **fields)
