"""Starts that the system has no room for wait until a job has ended (X-04)."""

from __future__ import annotations

import resource
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.edges.node_jobs import lasting_time, opened, order, survivors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.edges.node.launcher import NodeLauncher


@contextmanager
def crowded(launcher: NodeLauncher) -> Iterator[None]:
    """The agent can open one pipe more, and a job needs two."""
    pid = launcher.agent_pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    taken = {int(fd.name) for fd in Path(f"/proc/{pid}/fd").iterdir()}
    _, second = [fd for fd in range(100) if fd not in taken][:2]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (second + 1, limits[1]))
    yield
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


async def heard(launcher: NodeLauncher, home: Path, job: str) -> None:
    """Wait until the agent has read all that was said to it before."""
    await launcher.launch(order(home, job=job)).exited()


async def test_a_start_without_room_waits_for_the_end_of_a_job(home: Path) -> None:
    lasting = lasting_time()
    async with opened(home) as launcher:
        runs = launcher.launch(order(home, "sleep", lasting, job="runs"))
        await runs.started()
        with crowded(launcher):
            held = [launcher.launch(order(home, "true", job=f"{n}")) for n in range(3)]
            await heard(launcher, home, "x")
            assert [attempt.receipt for attempt in held] == [None] * 3
            runs.stop()
            receipts = [await attempt.exited() for attempt in held]
        assert [receipt.exit_code for receipt in receipts] == [0, 0, 0]
        assert (await runs.exited()).signal == "SIGTERM"
    assert not survivors(lasting)


async def test_without_another_job_there_is_nothing_to_wait_for(home: Path) -> None:
    async with opened(home) as launcher:
        await heard(launcher, home, "x")
        with crowded(launcher):
            receipt = await launcher.launch(order(home, "true")).exited()
        assert (receipt.ending, receipt.started_at) == ("spawn", None)
        message = "the program true could not be started: Too many open files"
        assert receipt.error == message


async def test_a_held_start_can_be_stopped_and_paused(home: Path) -> None:
    lasting = lasting_time()
    async with opened(home) as launcher:
        runs = launcher.launch(order(home, "sleep", lasting, job="runs"))
        await runs.started()
        with crowded(launcher):
            stopped, paused = (
                launcher.launch(order(home, "sleep", lasting, job=job)) for job in "ab"
            )
            stopped.stop()
            receipt = await stopped.exited()
            assert (receipt.ending, receipt.started_at) == ("stop", None)
            paused.pause()
            runs.stop()
            assert await paused.started() is not None
        await heard(launcher, home, "x")
        paused.resume()
        paused.stop()
        receipt = await paused.exited()
        assert (receipt.ending, receipt.paused_seconds > 0) == ("stop", True)
    assert not survivors(lasting)


async def test_a_held_start_ends_with_the_launcher(home: Path) -> None:
    lasting = lasting_time()
    async with opened(home) as launcher:
        runs = launcher.launch(order(home, "sleep", lasting, job="runs"))
        await runs.started()
        with crowded(launcher):
            held = launcher.launch(order(home, "sleep", lasting, job="held"))
            await heard(launcher, home, "x")
    assert held.receipt is not None
    assert (held.receipt.ending, held.receipt.started_at) == ("stop", None)
    assert not survivors(lasting)
