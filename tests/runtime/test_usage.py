"""What agents used: known to the token where it was told, and unknown elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import to_builtins

from forge_actors import open_runtime
from forge_actors.client import offline_usage
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.spending import GROUPS, UsageSum
from forge_actors.runtime import telemetry
from forge_actors.runtime.moments import parse_day
from forge_actors.testing.agents import NAMES, FakeAgent
from tests.runtime.agents_kit import agents  # noqa: F401 - a fixture
from tests.runtime.embedding_kit import (
    home,  # noqa: F401 - a fixture
    repo,  # noqa: F401 - a fixture
)
from tests.runtime.kit import running, settings

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors import Runtime
    from forge_actors.domain.jobs import JobView


async def run(runtime: Runtime, repo: Path, agent: str) -> JobView:
    job = await runtime.submit(repo, [], agent=agent, prompt="Go.")
    return await job.wait()


async def sums(runtime: Runtime, by: str) -> dict[str | None, UsageSum]:
    report = await runtime.control.usage(by)  # type: ignore[arg-type]
    return {each.key: each for each in report.groups}


async def test_what_each_agent_used_is_added_up_by_each_group(
    repo: Path, home: Path
) -> None:
    async with running(home) as runtime:
        views = [await run(runtime, repo, name) for name in NAMES]
        by_agent = await sums(runtime, "agent")
        assert set(by_agent) == set(NAMES)
        assert {each.output_tokens for each in by_agent.values()} == {7}
        assert by_agent["claude"].cost is not None
        # These two do not tell what it costs: that is not nothing.
        for name in ("codex", "copilot"):
            assert by_agent[name].cost is None
            assert by_agent[name].unknown == {
                "cost": 1,
                **({"cached_tokens": 1} if name == "copilot" else {}),
            }
        [whole] = (await sums(runtime, "repo")).values()
        assert (whole.attempts, whole.output_tokens) == (3, 21)
        assert whole.cost == by_agent["claude"].cost
        assert whole.unknown["cost"] == 2
        assert set(await sums(runtime, "job")) == {view.id for view in views}
        assert set(await sums(runtime, "provider")) == {
            "claude",
            "codex",
            "github-copilot",
        }
        attempts = await sums(runtime, "attempt")
        assert list(attempts) == [f"{view.id}.1" for view in reversed(views)]
        assert {each.attempts for each in attempts.values()} == {1}
        assert len(await sums(runtime, "day")) == 1
        later = await runtime.control.usage("day", since="2200-01-01")
        assert (later.groups, later.total.attempts) == ([], 0)
        assert later.since == "2200-01-01T00:00:00.000Z"
        with pytest.raises(InvalidInput, match="since"):
            await runtime.control.usage("day", since="yesterday")


async def test_it_reads_the_same_where_nothing_serves_the_home(
    repo: Path, home: Path
) -> None:
    async with running(home) as runtime:
        for name in NAMES:
            await run(runtime, repo, name)
        for since in (None, "2026-01-01", "2200-01-01"):
            told = None if since is None else parse_day(since, 0.0, field="since")
            for by in GROUPS:
                served = await runtime.control.usage(by, since)
                assert offline_usage.usage(str(home), by, told) == to_builtins(served)


async def test_the_usage_of_a_resumed_session_of_codex_is_what_it_added(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    agents["codex"].play("works", wait=0.0)
    async with open_runtime(home, settings(), stop="shutdown") as runtime:
        job = await runtime.submit(
            repo, [], agent="codex", prompt="Go.", replay="safe", grace=5
        )
        await runtime.control.read_log(job.id, "stdout", 0, limit=9999, wait=True)
    agents["codex"].play("success")
    async with running(home) as runtime:
        [view] = await runtime.control.wait([job.id])
        assert (view.state, view.attempt) == ("succeeded", 2)
        assert view.agent is not None
        assert view.agent.usage is not None
        assert view.agent.usage.output_tokens == 7
        [of_job] = (await sums(runtime, "job")).values()
    # What the first attempt used, before it was ended, it did not tell.
    assert (of_job.attempts, of_job.output_tokens) == (2, 7)
    assert of_job.unknown == {
        "input_tokens": 1,
        "output_tokens": 1,
        "cached_tokens": 1,
        "cost": 2,
    }


async def test_the_file_of_telemetry_is_ours_alone_and_goes_with_the_end(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    agents["copilot"].play("works")
    async with running(home) as runtime:
        job = await runtime.submit(repo, [], agent="copilot", prompt="Go.")
        await runtime.control.read_log(job.id, "stdout", 0, limit=9999, wait=True)
        [file] = (home / "logs").glob("*.telemetry")
        assert file.stat().st_mode & 0o777 == 0o600
        await job.cancel()
        await job.wait()
        await runtime.control.wait_idle()
        report = await runtime.control.usage("agent")
    assert report.total.attempts == 1
    assert report.total.input_tokens is None, "it was ended before it told"
    assert list((home / "logs").glob("*.telemetry")) == []


async def test_telemetry_that_is_too_long_says_nothing(
    repo: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "MAX_TELEMETRY", 100)
    async with running(home) as runtime:
        view = await run(runtime, repo, "copilot")
    assert view.state == "succeeded"
    assert view.agent is not None
    assert view.agent.usage is None
