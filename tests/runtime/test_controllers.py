"""Controllers of an embedded runtime: hosts, what a turn may do, and marks."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import to_builtins

from forge_actors.client import offline_inbox
from forge_actors.client.activations import mark
from forge_actors.domain.continuation import NotNow
from forge_actors.domain.controller_hosts import HostAnswer
from forge_actors.domain.controller_views import ControllerRequest
from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.domain.schedule_views import ScheduleRequest
from forge_actors.runtime.activations import consume
from forge_actors.testing.agents import FakeAgent
from forge_actors.testing.controller_hosts_contract import CHECKS, HostBench
from forge_actors.testing.controllers import FakeHost
from tests.runtime.agents_kit import agents  # noqa: F401 - a fixture
from tests.runtime.embedding_kit import (
    home,  # noqa: F401 - a fixture
    repo,  # noqa: F401 - a fixture
)
from tests.runtime.kit import running
from tests.runtime.test_follow_ups import ended, first

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

    from forge_actors import Runtime
    from forge_actors.domain.controller_hosts import ControllerHost


class FakeBench:
    """A fake host with a session."""

    repo, job = "app", None

    def __init__(self) -> None:
        self.host = FakeHost()
        self.binding: dict[str, Any] = {"place": "there"}
        self.nonsense: dict[str, Any] = {"place": 7}

    async def lose(self) -> None:
        self.host.answer = HostAnswer("rejected", "it is gone")


class ProcessBench:
    """Ours, with the session of a job."""

    def __init__(self, runtime: Runtime, repo: str, job: str) -> None:
        self._runtime = runtime
        self.repo = repo
        self.job: str | None = job
        self.host: ControllerHost = runtime.control.controllers.host("process")
        self.binding: dict[str, Any] = {}
        self.nonsense: dict[str, Any] = {"place": 7}

    async def lose(self) -> None:
        # A person goes on with it, and that has not ended.
        assert self.job is not None
        await self._runtime.control.pause("all")
        await self._runtime.control.continue_job(self.job, "More.")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_fake_host_keeps_the_contract(
    check: Callable[[HostBench], Awaitable[None]],
) -> None:
    await check(FakeBench())


@asynccontextmanager
async def session(
    home: Path, repo: Path, agents: dict[str, FakeAgent]
) -> AsyncGenerator[tuple[Runtime, str, str]]:
    agents["claude"].play("echoes")
    async with running(home) as runtime:
        begun = await first(runtime, repo, "claude")
        yield runtime, begun.repo, begun.id


async def test_the_process_host_keeps_the_contract(
    home: Path,
    repo: Path,
    agents: dict[str, FakeAgent],
) -> None:
    async with session(home, repo, agents) as (runtime, of, job):
        bench = ProcessBench(runtime, of, job)
        for check in CHECKS[:2]:
            await check(bench)
        told = await bench.host.found("w1")
        assert told is not None
        assert told.job is not None
        view = await ended(runtime, told.job)
        assert view.agent is not None
        assert view.agent.continues == job
        # What no person asks for has no more than what it goes on with was allowed.
        assert view.effects is not None
        assert (view.effects.automated, view.effects.authorised) == (True, [])
        await CHECKS[2](bench)
        with pytest.raises(InvalidInput, match="whose session"):
            bench.host.check({}, None)
        plain = await runtime.submit(repo, ["true"])
        with pytest.raises(InvalidInput, match="has no agent"):
            bench.host.check({}, plain.id)
        with pytest.raises(InvalidInput, match="one of claude"):
            bench.host.check({"agent": "codex"}, job)


async def test_who_may_add_what(
    home: Path,
    repo: Path,
    agents: dict[str, FakeAgent],
) -> None:
    async with session(home, repo, agents) as (runtime, of, job):
        control = runtime.control
        for fields, field in (
            ({"job": None}, "repo"),
            ({"job": None, "repo": of}, "job"),
            ({"host": "nowhere"}, "host"),
            ({"prompt": " "}, "prompt"),
            ({"rounds": 0}, "rounds"),
            ({"grace": "5s"}, "grace"),
            ({"name": "-x"}, "name"),
            ({"binding": {"x": "y" * 70_000}}, "binding"),
        ):
            with pytest.raises(InvalidInput) as error:
                await control.add_controller(asked(**{"job": job, **fields}))
            assert error.value.field == field
        with pytest.raises(Refused, match="no session go on but its own"):
            await control.add_controller(asked(job), caller="1abc")
        view = await control.add_controller(asked(job), caller=job)
        assert (view.repo, view.binding, view.turn) == (of, {"agent": "claude"}, None)
        with pytest.raises(Refused, match="already"):
            await control.add_controller(asked(job))
        for fields, field in (
            ({"wake": "other"}, "wake"),
            ({"job": {"argv": ["true"]}}, "wake"),
        ):
            with pytest.raises(InvalidInput) as error:
                await control.add_schedule(wakes(of, "s", **fields))
            assert error.value.field == field
        with pytest.raises(InvalidInput, match="a person adds"):
            await control.apply_schedules([wakes(of, "s")], "/f")
        patient = wakes(of, "s", max_failures=0, cooldown="1d")
        added = await control.add_schedule(patient)
        told = added.definition
        assert (told["shadow"], told["max_failures"]) == (True, 3)
        assert (told["cooldown"], told["daily_budget"]) == (86400, 3600)
        edited = await control.edit_schedule(wakes(of, "s", backoff=7, max_failures=9))
        told = edited.definition
        assert ("shadow" in told, told["backoff"], told["max_failures"]) == (
            *(False, 600),
            3,
        )
        await control.pause_controller("fixer")
        with pytest.raises(NotNow, match="paused"):
            await control.wake_controller("fixer")
        assert (await control.resume_controller("fixer")).state == "active"
        with pytest.raises(Refused, match="no turn"):
            await control.tell_controller(None, "wait", caller=job)
        await control.remove_controller("fixer")
        assert await control.list_controllers() == []


async def test_a_person_is_told_of_one_that_waits_for_them(
    home: Path,
    repo: Path,
    agents: dict[str, FakeAgent],
) -> None:
    async with session(home, repo, agents) as (runtime, _, job):
        control = runtime.control
        await control.pause("all")
        await control.add_controller(asked(job))
        woken = await control.wake_controller("fixer", "once")
        assert (await control.wake_controller("fixer", "once")) == woken
        assert woken.job is not None
        note = "which of the two? token=ghp_" + "a" * 36
        said = control.tell_controller(
            None, "wait_for_user", note=note, caller=woken.job
        )
        view = await said
        assert view.turn is not None
        assert view.turn.told == "wait_for_user"
        await control.resume("all")
        async for event in runtime.events(after=0):
            if event.kind == "controller_waiting_for_user":
                break
        [item] = (await control.inbox()).items
        assert (item.kind, item.job) == ("controller", woken.job)
        assert "which of the two?" in item.says
        assert "ghp_" not in item.says
        assert "forge-actors controller resume fixer" in item.actions
        [told] = await control.controller_wakes("fixer")
        assert (told.state, told.job, told.by) == ("dispatched", woken.job, "person")
    assert offline_inbox.items(str(home))["items"] == [to_builtins(item)]


async def test_a_mark_is_heeded_once_by_the_next_start(
    home: Path,
    repo: Path,
    agents: dict[str, FakeAgent],
) -> None:
    async with session(home, repo, agents) as (runtime, of, job):
        control = runtime.control
        await control.add_controller(asked(job))
        for name in ("shadow", "live", "paused"):
            await control.add_schedule(wakes(of, name))
        await control.edit_schedule(wakes(of, "live"))
        await control.pause_schedule("paused")
        plain = ScheduleRequest("plain", of, {"argv": ["true"]}, manual=True)
        await control.add_schedule(plain)
        for name in ("shadow", "live", "paused", "plain", "gone"):
            mark(str(home), name)
        broken = home / "activations" / "broken.json"
        broken.write_text("{")
        # Nothing heeds them while this one runs.
        shown = (await control.schedule("shadow")).definition
        assert shown["shadow"]
    async with running(home) as runtime:
        control = runtime.control
        views = {view.name: view.definition for view in await control.schedules()}
        assert [name for name, of_it in views.items() if of_it.get("shadow")] == [
            "paused"
        ]
        results = {}
        async for event in runtime.events(after=0):
            if event.kind in ("schedule_activated", "schedule_not_activated"):
                results[event.data["schedule"]] = event.data["result"]
            if event.seq >= control.last_event:
                break
        assert results == {
            "shadow": "activated",
            "live": "already_active",
            "paused": "cancelled",
            "plain": "cancelled",
            "gone": "cancelled",
        }
        assert [path.name for path in broken.parent.iterdir()] == ["broken.json"]
        again = await consume(home, control._store, control._clock)
        assert again == {"broken.json": "failed"}


def asked(job: str | None, **fields: Any) -> ControllerRequest:
    given = {"name": "fixer", "prompt": "Go on.", "job": job, **fields}
    return ControllerRequest(**given)


def wakes(of: str, name: str, **fields: Any) -> ScheduleRequest:
    given = {"job": {}, "wake": "fixer", "manual": True, **fields}
    return ScheduleRequest(name, of, **given)
