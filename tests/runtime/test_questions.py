"""Agents that ask a person, with real programs that play them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.actors import supervisor
from forge_actors.client import offline_inbox
from forge_actors.domain.errors import InvalidInput, Refused
from tests.runtime.embedding_kit import (
    home,  # noqa: F401 - a fixture
    repo,  # noqa: F401 - a fixture
)
from tests.runtime.kit import running
from tests.runtime.test_agent_jobs import agents  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from forge_actors import Job, Runtime
    from forge_actors.actors.supervisor_context import Context
    from forge_actors.testing.agents import FakeAgent


@pytest.fixture(autouse=True)
def attended(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a service: an embedded runtime lets nothing wait for a person."""
    monkeypatch.setattr(supervisor, "Context", partial(attend, supervisor.Context))


def attend(make: Callable[..., Context], **fields: Any) -> Context:
    return make(**{**fields, "attended": True})


MARK = "MARK-OF-THE-ANSWER-4711"


@asynccontextmanager
async def asking(
    repo: Path, home: Path, fake: FakeAgent
) -> AsyncGenerator[tuple[Runtime, Job], None]:
    """A job whose agent asks something, and waits."""
    fake.play("asks", text="Delete the table?")
    async with running(home) as runtime:
        job = await runtime.submit(repo, [], agent="claude", prompt="Go.")
        async for event in runtime.events(after=0):
            if event.kind == "job_waiting_for_approval":
                break
        yield runtime, job


async def test_a_question_frees_everything_and_its_answer_goes_on_in_the_session(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    async with asking(repo, home, agents["claude"]) as (runtime, job):
        control = runtime.control
        parked = await job.show()
        assert (parked.state, parked.refused) == ("waiting_for_approval", 1)
        assert parked.error is not None
        assert parked.error.message == "Delete the table? (yes / no)"
        assert parked.waiting is not None
        assert parked.waiting["kind"] == "approval"
        assert "It asks: Delete the table?" in await job.why()
        status = await control.status()
        assert status["capacity"]["workers"]["used"] == 0
        assert status["inbox"] == {"items": 1}
        [item] = (await control.inbox()).items
        assert (item.kind, item.job) == ("question", job.id)
        # Others are not held back by it, also not by what it has of the checkout.
        other = await (await runtime.submit(repo, ["true"])).wait()
        assert other.state == "succeeded"

        with pytest.raises(InvalidInput, match="is empty"):
            await control.answer(job.id, " ")
        with pytest.raises(Refused, match="asks nothing"):
            await control.answer(other.id, "yes")
        view = await control.answer(job.id, f"No. {MARK}")
        assert view.state in ("queued", "dispatched", "running")
        with pytest.raises(Refused, match="asks nothing"):
            await control.answer(job.id, "yes")
        end = await job.wait()
        assert (end.state, end.attempt, end.refused) == ("succeeded", 2, 1)
        assert end.agent is not None
        assert end.agent.text == f"No. {MARK} [{end.agent.session}]"
        assert end.worktree is not None
        assert parked.worktree is not None
        assert end.worktree["path"] == parked.worktree["path"]
        assert (await control.inbox()).items == []
        with pytest.raises(Refused, match="asks nothing"):
            await control.deny(job.id)
        told = [event async for event in _all(runtime)]
        assert MARK not in str(told)
    store = b"".join(path.read_bytes() for path in home.glob("forge.sqlite*"))
    assert MARK.encode() not in store.replace(f"No. {MARK} [".encode(), b"")


async def test_a_question_outlives_a_restart_and_can_be_denied(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    async with asking(repo, home, agents["claude"]) as (runtime, job):
        await runtime.control.hold(job.id)
        assert (await job.show()).state == "waiting_for_approval"
        await runtime.control.unhold(job.id)
        assert (await job.show()).state == "waiting_for_approval"
    [item] = offline_inbox.items(str(home))["items"]
    assert "asks: Delete the table?" in item["says"]
    async with running(home) as runtime:
        assert (await runtime.control.job(job.id)).state == "waiting_for_approval"
        assert (await runtime.control.inbox()).items[0].id == item["id"]
        view = await runtime.control.deny(job.id, "not on a Friday")
        assert view.state == "failed"
        assert view.error is not None
        assert (view.error.code, view.error.message) == ("DENIED", "not on a Friday")


async def test_an_approval_says_go_on(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    async with asking(repo, home, agents["claude"]) as (runtime, job):
        await runtime.control.approve(job.id)
        end = await job.wait()
        assert end.agent is not None
        assert end.agent.text.startswith("Yes, go on. [")


async def _all(runtime: Runtime) -> AsyncGenerator[object, None]:
    last = runtime.control.last_event
    async for event in runtime.events(after=0):
        yield event
        if event.seq >= last:
            return
