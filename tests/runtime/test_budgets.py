"""A spent budget lets nothing start, and ends what runs where that is asked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.testing.agents import FakeAgent, install
from tests.runtime.embedding_kit import (
    home,  # noqa: F401 - a fixture
    repo,  # noqa: F401 - a fixture
)
from tests.runtime.kit import running

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors import Job, Runtime


@pytest.fixture(autouse=True)
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeAgent]:
    folder = tmp_path / "bin"
    found = {name: install(folder, name) for name in ("claude", "codex")}
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    return found


async def submit(runtime: Runtime, repo: Path, agent: str, **options: Any) -> Job:
    return await runtime.submit(repo, [], agent=agent, prompt="Go.", **options)


@pytest.mark.parametrize(
    ("budgets", "words", "free"),
    [
        (
            {"providers": {"codex": {"tokens": 127}}},
            "the budget of codex for today is spent: 127 of 127 tokens are used",
            "claude",
        ),
        (
            {"tokens": 100},
            "the budget of this home for today is spent",
            None,
        ),
        (
            {"repositories": {"app": {"tokens": 100}}},
            "the budget of app for today is spent",
            None,
        ),
    ],
)
async def test_a_spent_budget_of_the_day_lets_nothing_start_of_its_own(
    budgets: dict[str, Any], words: str, free: str | None, repo: Path, home: Path
) -> None:
    async with running(home, budgets=budgets) as runtime:
        first = await (await submit(runtime, repo, "codex")).wait()
        assert first.state == "succeeded"
        second = await submit(runtime, repo, "codex")
        view = await runtime.control.job(second.id)
        assert view.waiting is not None
        assert view.waiting["kind"] == "limit"
        assert words in view.waiting["detail"]
        assert view.waiting["until"] is not None
        assert "T00:00:00" in view.waiting["until"]
        assert view.waiting["since"] == view.queued_at, "before it was nothing"
        await _is_told(runtime, words)
        plain = await (await runtime.submit(repo, ["true"], read_only=True)).wait()
        assert plain.state == "succeeded", "only agents are held"
        if free is not None:
            other = await (await submit(runtime, repo, free)).wait()
            assert other.state == "succeeded"
            either = await (await submit(runtime, repo, f"codex,{free}")).wait()
            assert (either.state, either.provider) == ("succeeded", free)
    # The next one knows it from what was saved.
    async with running(home, budgets=budgets) as runtime:
        view = await runtime.control.job(second.id)
        assert view.waiting is not None
        assert words in view.waiting["detail"]
    # And where the budget is larger it goes on.
    async with running(home) as runtime:
        [view] = await runtime.control.wait([second.id])
        assert (await runtime.control.inbox()).items == []
        assert (await runtime.control.status())["budgets"] == []
    assert view.state == "succeeded"


async def _is_told(runtime: Runtime, words: str) -> None:
    """The status and the inbox have it, as nothing starts until somebody acts."""
    status: dict[str, Any] = await runtime.control.status()
    [spent] = status["budgets"]
    assert words in spent["detail"]
    assert spent["until"].endswith("T00:00:00.000Z")
    [item] = (await runtime.control.inbox()).items
    assert item.kind == "budget"
    assert words in item.says
    assert item.evidence["settings"].startswith("[budgets")
    assert "forge-actors settings reload" in item.actions
    assert status["inbox"]["items"] == 1


async def test_a_raised_budget_that_is_spent_again_is_told_again(
    repo: Path, home: Path
) -> None:
    async with running(home, budgets={"tokens": 100}) as runtime:
        await (await submit(runtime, repo, "codex")).wait()
        [item] = (await runtime.control.inbox()).items
        await runtime.control.dismiss(item.id)
        assert (await runtime.control.inbox()).items == []
    async with running(home, budgets={"tokens": 101}) as runtime:
        [again] = (await runtime.control.inbox()).items
    assert again.id != item.id


async def test_an_agent_that_has_spent_a_budget_is_ended_where_that_is_asked_for(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    agents["claude"].play("works")
    async with running(home, budgets={"stop": True}) as runtime:
        job = await submit(runtime, repo, "claude", budget_tokens=5, replay="safe")
        view = await job.wait()
    assert view.state == "failed"
    assert view.error is not None
    assert view.error.code == "BUDGET_SPENT"
    assert "the budget of this job is spent" in view.error.message
    assert view.attempt == 1, "no other attempt follows"


async def test_what_runs_is_ended_for_a_budget_of_the_day_too_but_not_by_itself(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    agents["claude"].play("works")
    table = {"claude": {"tokens": 5}}
    async with running(home, budgets={"providers": table}) as runtime:
        job = await submit(runtime, repo, "claude")
        told = b""
        while b'"usage"' not in told:
            chunk = await runtime.control.read_log(
                job.id, "stdout", len(told), limit=9999, wait=True
            )
            told += chunk.data
        await job.cancel()
        assert (await job.wait()).state == "cancelled", "it ran until then"
    # What is saved of the first one and what the second has told are too much.
    async with running(home, budgets={"stop": True, "tokens": 200}) as runtime:
        report = await runtime.control.usage("agent")
        assert (report.total.input_tokens or 0) < 200
        view = await (await submit(runtime, repo, "claude")).wait()
    assert view.state == "failed"
    assert view.error is not None
    assert view.error.code == "BUDGET_SPENT"
    assert "the budget of this home for today is spent" in view.error.message


async def test_an_agent_that_ends_well_has_succeeded_whatever_it_used(
    repo: Path, home: Path
) -> None:
    async with running(home) as runtime:
        view = await (await submit(runtime, repo, "codex", budget_tokens=1)).wait()
    assert view.state == "succeeded"


async def test_a_budget_that_makes_no_sense_is_refused(repo: Path, home: Path) -> None:
    async with running(home) as runtime:
        with pytest.raises(InvalidInput, match="budget_cost"):
            await submit(runtime, repo, "codex", budget_cost=0.0)
        with pytest.raises(InvalidInput, match="budget_tokens"):
            await submit(runtime, repo, "codex", budget_tokens=-1)
        with pytest.raises(InvalidInput, match="is for a job with an agent"):
            await runtime.submit(repo, ["true"], budget_tokens=1)
