"""The real launcher and the fake one keep the same contract."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.domain.errors import LauncherDown
from forge_actors.testing import adoption_contract
from forge_actors.testing.launcher import FakeLauncher, FakeNode, Outcome
from forge_actors.testing.launcher_contract import CHECKS
from forge_actors.testing.scripted import ScriptedJob, ScriptedLauncher
from tests.edges.node_jobs import named, opened, order

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from forge_actors.domain.launch import LaunchOrder
    from forge_actors.domain.ports import Launcher
    from forge_actors.testing.launcher_contract import Check


def behave(order: LaunchOrder) -> Outcome | None:
    match order.argv[0]:
        case "true":
            return Outcome()
        case "false":
            return Outcome(exit_code=1)
        case "sleep":
            return None
        case program:
            return Outcome(spawn_error=f"there is no program {program}")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_node_launcher_keeps_the_contract(
    check: Check, tmp_path: Path
) -> None:
    await check(partial(opened, tmp_path), partial(order, tmp_path))


@pytest.mark.mock_clock
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_fake_launcher_keeps_the_contract(
    check: Check, tmp_path: Path
) -> None:
    await check(
        lambda: FakeLauncher(auto=behave).open(),
        partial(order, tmp_path),
    )


async def play(job: ScriptedJob) -> Outcome:
    match job.argv[0]:
        case "true":
            return Outcome()
        case "false":
            return Outcome(exit_code=1)
        case _:
            await trio.sleep_forever()
            raise AssertionError("for ever is over")


@pytest.mark.mock_clock
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_scripted_launcher_keeps_the_contract(
    check: Check, tmp_path: Path
) -> None:
    def open_() -> AbstractAsyncContextManager[Launcher]:
        return ScriptedLauncher(play, missing={"/no/such/program"}).open()

    await check(open_, partial(order, tmp_path))


@pytest.mark.parametrize(
    "check", adoption_contract.CHECKS, ids=lambda check: check.__name__
)
async def test_jobs_that_outlive_the_node_launcher_are_adopted(
    check: adoption_contract.Check, durable_home: Path
) -> None:
    await check(
        lambda owner: opened(durable_home, owner=owner, durable=True),
        partial(order, durable_home),
    )


@pytest.mark.mock_clock
@pytest.mark.parametrize(
    "check", adoption_contract.CHECKS, ids=lambda check: check.__name__
)
async def test_jobs_that_outlive_the_fake_launcher_are_adopted(
    check: adoption_contract.Check, tmp_path: Path
) -> None:
    node = FakeNode()
    await check(
        lambda owner: FakeLauncher(
            auto=behave, durable=True, node=node, owner=owner
        ).open(),
        partial(order, tmp_path),
    )


@pytest.mark.mock_clock
async def test_the_fake_does_what_the_test_says(tmp_path: Path) -> None:
    job = named(tmp_path)
    async with FakeLauncher(obeys_stop=False, now=lambda: 5.0).open() as launcher:
        attempt = launcher.launch(order(tmp_path, "anything"))
        with trio.fail_after(1):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(launcher.wait_output, job, 1, 9)
                await trio.testing.wait_all_tasks_blocked()
                launcher.emit(job, 10)
        attempt.stop(grace=3)
        assert launcher.stops == [(job, 1, 3, "stop")]
        assert [each.key for each in launcher.running] == [(job, 1)]
        launcher.finish(job, signal="SIGKILL", ending="stop", stderr_tail="bye")
        receipt = await attempt.exited()
        assert (receipt.ending, receipt.signal, receipt.exit_code) == (
            "stop",
            "SIGKILL",
            None,
        )
        assert (receipt.stderr_tail, receipt.stdout_bytes) == ("bye", 10)
        assert receipt.ended_at == 5.0
        with pytest.raises(LookupError):
            launcher.finish(job)
        launcher.forget(job, 1)
        assert launcher.forgotten == [(job, 1)]


@pytest.mark.mock_clock
async def test_the_fake_can_go_down_and_come_back(tmp_path: Path) -> None:
    async with FakeLauncher().open() as launcher:
        attempt = launcher.launch(order(tmp_path, "anything"))
        launcher.go_down()
        assert (await attempt.exited()).ending == "lost"
        with pytest.raises(LauncherDown):
            launcher.launch(order(tmp_path, "anything", job="next"))
        launcher.come_back()
        launcher.launch(order(tmp_path, "anything", job="next"))
        assert [each.job for each in launcher.orders] == [
            named(tmp_path, job) for job in ("job", "next")
        ]
