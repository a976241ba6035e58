"""Jobs that go on with others: in their session, or anew with a summary of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.testing.agents import NAMES, FakeAgent
from tests.runtime.agents_kit import agents  # noqa: F401 - a fixture
from tests.runtime.embedding_kit import (
    home,  # noqa: F401 - a fixture
    repo,  # noqa: F401 - a fixture
)
from tests.runtime.kit import running

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors import Runtime
    from forge_actors.domain.events import EventView
    from forge_actors.domain.jobs import JobView


async def ended(runtime: Runtime, job: str) -> JobView:
    [view] = await runtime.control.wait([job])
    return view


async def first(runtime: Runtime, repo: Path, agent: str, **options: object) -> JobView:
    job = await runtime.submit(repo, [], agent=agent, prompt="Begin.", **options)
    return await job.wait()


async def followed(runtime: Runtime, job: str, prompt: str = "More.") -> JobView:
    made = await runtime.control.continue_job(job, prompt)
    assert made.continues == job
    return await ended(runtime, made.id)


def forget_sessions(tmp_path: Path) -> None:
    for folder in (".claude", ".codex", ".copilot"):
        for file in (tmp_path / folder).rglob("*.jsonl"):
            file.unlink()


async def how_begun(runtime: Runtime, job: str) -> list[object]:
    told: list[EventView] = []
    last = runtime.control.last_event
    async for event in runtime.events(after=0):
        told.append(event)
        if event.seq >= last:
            break
    return [e.data["how"] for e in told if (e.kind, e.job) == ("agent_session", job)]


@pytest.mark.parametrize("name", NAMES)
async def test_a_follow_up_is_asked_in_the_same_session_and_worktree(
    name: str, repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    agents[name].play("echoes")
    async with running(home) as runtime:
        begun = await first(runtime, repo, name, isolate=True)
        view = await followed(runtime, begun.id)
        again = await followed(runtime, view.id, "Once more.")
        assert await how_begun(runtime, begun.id) == ["new"]
        assert await how_begun(runtime, again.id) == ["resumed"]
    assert begun.agent is not None
    assert begun.worktree is not None
    session = begun.agent.session
    for each, before, prompt in (
        (view, begun, "More."),
        (again, view, "Once more."),
    ):
        assert each.state == "succeeded"
        assert each.agent is not None
        assert each.agent.text == f"{prompt} [{session}]"
        assert (each.agent.session, each.agent.resumed) == (session, True)
        assert each.agent.continues == before.id
        assert each.worktree is not None
        assert each.worktree["path"] == begun.worktree["path"]
        assert each.worktree["of"] == begun.id
        assert f"write:worktree:{begun.id}" in each.claims
        assert f"write:session:{session}" in each.claims


@pytest.mark.parametrize("name", NAMES)
async def test_a_follow_up_whose_session_is_gone_begins_with_a_summary(
    name: str, repo: Path, home: Path, tmp_path: Path, agents: dict[str, FakeAgent]
) -> None:
    agents[name].play("success", text="It is half done.")
    async with running(home) as runtime:
        begun = await first(runtime, repo, name)
        forget_sessions(tmp_path)
        agents[name].play("echoes")
        view = await followed(runtime, begun.id)
        assert await how_begun(runtime, view.id) == ["anew"]
    assert (view.state, view.attempt) == ("succeeded", 1)
    assert view.agent is not None
    assert begun.agent is not None
    for words in ("Begin.", "It is half done.", "More.", "That session is gone"):
        assert words in view.agent.text
    assert view.agent.text.endswith("[]"), "nothing was resumed"
    assert (view.agent.anew, view.agent.resumed) == (True, False)
    assert view.agent.session not in (None, begun.agent.session)


@pytest.mark.parametrize("name", NAMES)
async def test_a_program_that_does_not_know_the_session_begins_anew_once(
    name: str, repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    async with running(home) as runtime:
        begun = await first(runtime, repo, name)
        agents[name].play("forgets")
        view = await followed(runtime, begun.id)
        assert await how_begun(runtime, view.id) == ["resumed", "anew"]
    assert (view.state, view.attempt) == ("succeeded", 2)
    assert view.agent is not None
    assert view.agent.anew
    assert "That session is gone" in view.agent.text


def session(view: JobView) -> str:
    assert view.agent is not None
    assert view.agent.session is not None
    return view.agent.session


async def test_two_jobs_never_go_on_with_one_session_at_once(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    async with running(home) as runtime:
        begun = await first(runtime, repo, "claude", isolate=False)
        agents["claude"].play("works")
        made = await runtime.control.continue_job(begun.id, "More.")
        for job in (begun.id, made.id):
            with pytest.raises(Refused, match="ended"):
                await runtime.control.continue_job(job, "And more.")
        with pytest.raises(Refused, match=f"job {made.id} goes on with the session"):
            await runtime.control.retry([begun.id], resume=True)
        await runtime.control.cancel(made.id)
        await ended(runtime, made.id)
        agents["claude"].play("success")
        assert (await followed(runtime, begun.id)).state == "succeeded"


async def test_of_two_callers_at_once_one_goes_on(repo: Path, home: Path) -> None:
    made: list[str] = []
    refused: list[str] = []

    async def ask(runtime: Runtime, job: str) -> None:
        try:
            made.append((await runtime.control.continue_job(job, "More.")).id)
        except Refused as error:
            refused.append(str(error))

    async with running(home) as runtime:
        begun = await first(runtime, repo, "claude")
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(ask, runtime, begun.id)
        assert (len(made), len(refused)) == (1, 4)
        assert (await ended(runtime, made[0])).state == "succeeded"


async def test_what_cannot_be_gone_on_with_is_refused_with_the_reason(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    async with running(home) as runtime:
        plain = await runtime.submit(repo, ["true"])
        await plain.wait()
        with pytest.raises(Refused, match="has no agent"):
            await runtime.control.continue_job(plain.id, "More.")
        with pytest.raises(Refused, match="has no agent"):
            await runtime.control.retry([plain.id], resume=True)
        command = await runtime.submit(repo, ["cat"], agent="command", prompt="Go.")
        await command.wait()
        with pytest.raises(Refused, match="its program began none"):
            await runtime.control.continue_job(command.id, "More.")
        held = await runtime.submit(repo, [], agent="claude", prompt="Go.")
        await held.wait()
        with pytest.raises(InvalidInput, match="prompt"):
            await runtime.control.continue_job(held.id, " ")


async def test_a_worktree_that_was_removed_is_made_again(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    agents["claude"].play("echoes")
    async with running(home) as runtime:
        begun = await first(runtime, repo, "claude")
        assert begun.worktree is not None
        [removed] = await runtime.control.remove_worktrees([begun.id])
        assert removed.removed, removed
        view = await followed(runtime, begun.id)
        assert view.state == "succeeded"
        assert view.agent is not None
        assert view.agent.text == f"More. [{session(begun)}]"
        [kept] = await runtime.control.worktrees(looking=False)
        assert (kept.id, kept.state) == (begun.id, "ready")


async def test_a_worktree_that_cannot_be_made_again_refuses_it(
    repo: Path, home: Path, tmp_path: Path
) -> None:
    async with running(home) as runtime:
        begun = await first(runtime, repo, "claude")
        await runtime.control.remove_worktrees([begun.id])
        assert begun.worktree is not None
        (tmp_path / "in the way").mkdir()
        path = begun.worktree["path"]
        assert isinstance(path, str)
        os.makedirs(path)
        with pytest.raises(Refused, match="cannot be made again"):
            await runtime.control.continue_job(begun.id, "More.")


async def test_a_retry_has_a_new_session_unless_it_is_to_resume(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    agents["claude"].play("echoes")
    async with running(home) as runtime:
        begun = await first(runtime, repo, "claude")
        [fresh] = await runtime.control.retry([begun.id])
        [resumed] = await runtime.control.retry([begun.id], resume=True)
        plain = await ended(runtime, fresh.id)
        view = await ended(runtime, resumed.id)
    assert plain.agent is not None
    assert plain.agent.text == "Begin. []"
    assert plain.worktree is not None
    assert "of" not in plain.worktree
    assert session(plain) != session(begun)
    assert view.retry_of == begun.id
    assert view.agent is not None
    assert view.agent.text.startswith("Your last try did not end well.")
    assert view.agent.text.endswith(f"Begin. [{session(begun)}]")
    assert view.worktree is not None
    assert view.worktree["of"] == begun.id


async def test_the_session_is_shown_while_the_job_runs(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    agents["codex"].play("works")
    async with running(home) as runtime:
        job = await runtime.submit(repo, [], agent="codex", prompt="Go.")
        async for event in runtime.events(after=0):
            if event.kind == "agent_session":
                break
        view = await job.show()
        assert view.state == "running"
        assert session(view) == event.data["session"]
        await job.cancel()
        assert session(await job.wait()) == event.data["session"]


async def test_a_worktree_stays_while_a_job_is_to_go_on_in_it(
    repo: Path, home: Path
) -> None:
    async with running(home) as runtime:
        begun = await first(runtime, repo, "claude")
        [ended_view] = await runtime.control.worktrees(looking=False)
        assert ended_view.job_state == "succeeded"
        await runtime.control.pause("all")
        made = await runtime.control.continue_job(begun.id, "More.")
        [view] = await runtime.control.worktrees(looking=False)
        assert (view.id, view.job_state) == (begun.id, "queued")
        [removed] = await runtime.control.remove_worktrees([begun.id], force=True)
        assert not removed.removed
        await runtime.control.resume("all")
        assert (await ended(runtime, made.id)).state == "succeeded"
        [removed] = await runtime.control.remove_worktrees([begun.id])
        assert removed.removed
