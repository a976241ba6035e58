"""What fails around the jobs: their folder, their order, the agent, a pass."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from forge_actors import open_runtime
from forge_actors.domain.errors import LauncherDown
from forge_actors.edges.machine import PressureGauge
from forge_actors.runtime.orders import OrderMaker
from tests.runtime.control_kit import controlled
from tests.runtime.kit import make_repository, running, settings

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.jobs import Job
    from forge_actors.domain.launch import LaunchOrder


async def test_waiting_jobs_of_a_deleted_folder_fail_and_running_ones_go_on(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path, limits={"workers": 1}) as case:
        held = await case.hold()
        waits = await case.submit()
        shutil.rmtree(tmp_path / "app")
        [running_job, waiting_job] = await case.end(held, waits)
        assert running_job.state == "cancelled"
        assert waiting_job.state in ("failed", "cancelled")
        later = await case.submit()
        [ended] = await case.control.wait([later])
        assert ended.state == "failed"
        assert ended.error is not None
        assert ended.error.code == "REPOSITORY_GONE"


async def test_an_actor_that_fails_with_a_grant_in_hand_gives_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = OrderMaker.__call__
    failures = [ZeroDivisionError()]

    def once(self: OrderMaker, job: Job) -> LaunchOrder:
        if failures:
            raise failures.pop()
        return make(self, job)

    monkeypatch.setattr(OrderMaker, "__call__", once)
    async with controlled(tmp_path) as case:
        job = await case.submit()
        assert (await case.control.wait([job]))[0].state == "succeeded"
        status = await case.control.status()
        capacity = status["capacity"]
        assert isinstance(capacity, dict)
        assert {entry["used"] for entry in capacity.values()} == {0}


async def test_an_agent_that_keeps_dying_ends_the_runtime_and_keeps_the_queue(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    jobs: list[str] = []

    async def outlive_agents() -> None:
        async with open_runtime(home, settings(limits={"workers": 1})) as runtime:
            await runtime.add_repository(make_repository(tmp_path / "app"))
            jobs.append((await runtime.submit("app", ["sleep", "600"])).id)
            jobs.append((await runtime.submit("app", ["true"])).id)
            async for event in runtime.events(after=0):
                if event.kind == "job_running":
                    # Two that one agent ran are told of at once.
                    with suppress(ProcessLookupError):
                        os.kill(runtime.control.agent_pid, signal.SIGKILL)
                if event.kind == "job_human_attention_required":
                    await runtime.submit("app", ["sleep", "600"], priority="P0")

    with pytest.raises(LauncherDown, match="within a minute"):
        await outlive_agents()
    first, waits = jobs
    async with running(home) as runtime:
        assert (await runtime.control.job(first)).state == "human_attention_required"
        [ended] = await runtime.control.wait([waits])
        assert ended.state == "succeeded"


async def test_a_failed_look_at_the_machine_is_repeated_when_embedded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = PressureGauge.__call__
    failures = [OSError("no such gauge")]

    def once(self: PressureGauge) -> str | None:
        if failures:
            raise failures.pop()
        return look(self)

    monkeypatch.setattr(PressureGauge, "__call__", once)
    async with controlled(tmp_path) as case:
        job = await case.submit()
        assert (await case.control.wait([job]))[0].state == "succeeded"
