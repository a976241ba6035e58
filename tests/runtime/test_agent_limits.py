"""Agents that are refused, with real programs that play them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

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
    reset = int(time.time()) + 4
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
