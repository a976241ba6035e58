"""A job's tree can stand still and go on; its time budgets stand still with it."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.testing.launcher import FakeLauncher
from tests.edges.node_jobs import (
    DOUBLE_FORK,
    named,
    opened,
    order,
    shell,
    survivors,
    text,
)

if TYPE_CHECKING:
    from forge_actors.edges.node.launcher import NodeLauncher


async def passes(launcher: NodeLauncher, home: Path, seconds: float) -> None:
    """Let time pass for the agent: a job that sleeps, and is never paused."""
    clock = launcher.launch(order(home, "sleep", str(seconds), job=f"clock-{seconds}"))
    assert (await clock.exited()).exit_code == 0


def letters(mark: str) -> dict[int, str]:
    """The letters in /proc of all processes that have `mark` in their command line."""
    found = {}
    for line in survivors(mark):
        pid = int(line.split()[0])
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            stat = Path(f"/proc/{pid}/stat").read_text()
            found[pid] = stat.rpartition(")")[2].split()[0]
    return found


def states(mark: str) -> set[str]:
    return set(letters(mark).values())


async def stands_still(mark: str, least: int) -> None:
    """Wait until at least so many processes are there and all of them are stopped.

    One look may miss a process that is just being started, but not the next one.
    """
    before = None
    while True:
        found = letters(mark)
        if len(found) >= least and set(found.values()) == {"T"} and found == before:
            return
        before = found
        await trio.lowlevel.checkpoint()


async def test_every_process_of_a_paused_tree_stands_still(
    home: Path, lasting: str
) -> None:
    """P-09: children, those in sessions of their own, and what they orphaned."""
    fork = f"{shlex.quote(sys.executable)} -c {shlex.quote(DOUBLE_FORK)} {lasting}"
    script = (
        f"(sleep {lasting} & sleep {lasting}) & setsid sleep {lasting} & {fork};"
        f"{fork} -i; wait"
    )

    def asleep() -> list[str]:
        return [line for line in survivors(lasting) if " sleep" in line[:13]]

    async with opened(home) as launcher:
        attempt = launcher.launch(shell(home, script))
        await launcher.wait_output(named(home), 1, len("forkedforked") - 1)
        # Each looks like what has started it until it is another program.
        while len(asleep()) < 5:
            await trio.lowlevel.checkpoint()
        assert "T" not in states(lasting)
        # The one without any mark is told from the clock by when it was started.
        await passes(launcher, home, 0.1)
        attempt.pause()
        await stands_still(lasting, 5)
        await passes(launcher, home, 0.5)
        assert len(asleep()) == 5
        assert states(lasting) == {"T"}
        attempt.resume()
        await passes(launcher, home, 0.2)
        assert "T" not in states(lasting)
        attempt.stop()
        receipt = await attempt.exited()
    assert (receipt.ending, receipt.forced) == ("stop", False)
    assert receipt.paused_seconds > 0.4
    assert not survivors(lasting)


async def test_a_tree_that_forks_all_the_time_is_caught(
    home: Path, lasting: str
) -> None:
    """Each new process is in a session of its own, and lets go of its parent."""
    forks = (
        "import os, time\n"
        "os.write(1, b'.')\n"
        "for number in range(1_000_000):\n"
        "    if os.fork():\n"
        "        os._exit(0)\n"
        "    os.setsid()\n"
        "    time.sleep(0.03)\n"
    )
    program = f"{shlex.quote(sys.executable)} -c {shlex.quote(forks)} {lasting}"
    async with opened(home) as launcher:
        attempt = launcher.launch(shell(home, f"{program} & {program} & wait; cat a"))
        os.mkfifo(home / "a")
        await launcher.wait_output(named(home), 1, 1)
        await passes(launcher, home, 0.2)
        attempt.pause()
        await stands_still(lasting, 2)
        standing = survivors(lasting)
        await passes(launcher, home, 0.2)
        assert survivors(lasting) == standing
        attempt.stop(grace=1)
        await attempt.exited()
    assert not survivors(lasting)


async def test_time_budgets_stand_still_while_a_job_is_paused(home: Path) -> None:
    """P-09: neither the execution budget nor the idle one counts the pause."""
    async with opened(home) as launcher:
        wall = launcher.launch(order(home, "sleep", "600", job="wall", wall=1.5))
        idle = launcher.launch(order(home, "sleep", "600", job="idle", idle=1.5))
        # At once: what a busy machine takes to start them is none of their budget.
        for attempt in (wall, idle):
            attempt.pause()
        await passes(launcher, home, 2)
        for attempt in (wall, idle):
            assert attempt.receipt is None
            attempt.stop()
            receipt = await attempt.exited()
            assert receipt.ending == "stop"
            assert receipt.paused_seconds > 1.9


@pytest.mark.parametrize("budget", ["wall", "idle"])
async def test_a_resumed_job_has_only_the_budget_it_had_left(
    home: Path, budget: str
) -> None:
    wanted = shell(home, "echo; exec sleep 600", **{budget: 0.5})
    async with opened(home) as launcher:
        attempt = launcher.launch(wanted)
        await launcher.wait_output(named(home), 1, 0)
        attempt.pause()
        await passes(launcher, home, 0.7)
        attempt.resume()
        receipt = await attempt.exited()
    assert receipt.ending == budget
    assert receipt.started_at is not None
    lasted = receipt.ended_at - receipt.started_at
    assert lasted >= receipt.paused_seconds + 0.49


async def test_a_paused_job_acts_on_its_stop_signal(home: Path, lasting: str) -> None:
    """P-08: with all of its tree, within its grace and without force."""
    script = (
        f"trap 'echo cleaned; exit 5' TERM; setsid sleep {lasting} & echo; "
        f"while :; do sleep 0.05; done"
    )
    wanted = shell(home, script, grace=60)
    async with opened(home) as launcher:
        attempt = launcher.launch(wanted)
        await launcher.wait_output(named(home), 1, 0)
        attempt.pause()
        await passes(launcher, home, 0.3)
        attempt.stop()
        receipt = await attempt.exited()
    assert (receipt.ending, receipt.exit_code, receipt.forced) == ("stop", 5, False)
    assert "cleaned" in text(wanted)
    assert not survivors(lasting)


async def test_the_end_of_the_service_ends_paused_jobs(
    home: Path, lasting: str
) -> None:
    """P-08: a paused job does not hold up the end of its service."""
    script = f"trap 'exit 5' TERM; echo; sleep {lasting} & wait"
    async with opened(home) as launcher:
        attempt = launcher.launch(shell(home, script))
        await launcher.wait_output(named(home), 1, 0)
        attempt.pause()
        await passes(launcher, home, 0.2)
    receipt = await attempt.exited()
    assert (receipt.ending, receipt.exit_code) == ("owner", 5)
    assert not survivors(lasting)


async def test_what_is_left_of_a_paused_job_ends_when_its_leader_is_killed(
    home: Path, lasting: str
) -> None:
    script = f"(trap 'echo told' TERM; sleep {lasting}) & echo; wait"
    async with opened(home) as launcher:
        attempt = launcher.launch(shell(home, script))
        identity = await attempt.started()
        assert identity is not None
        await launcher.wait_output(named(home), 1, 0)
        attempt.pause()
        await passes(launcher, home, 0.2)
        os.kill(identity.pid, signal.SIGKILL)
        receipt = await attempt.exited()
    assert (receipt.ending, receipt.signal) == ("exit", "SIGKILL")
    assert receipt.paused_seconds > 0
    assert not receipt.forced
    assert not survivors(lasting)


async def test_a_paused_job_costs_the_agent_nothing(home: Path) -> None:
    def agent_ticks() -> int:
        stat = Path(f"/proc/{launcher.agent_pid}/stat").read_text()
        return sum(map(int, stat.rpartition(")")[2].split()[11:13]))

    async with opened(home) as launcher:
        attempt = launcher.launch(order(home, "sleep", "600", idle=0.2))
        await attempt.started()
        attempt.pause()
        await passes(launcher, home, 0.3)
        before = agent_ticks()
        await passes(launcher, home, 1)
        assert agent_ticks() - before <= 2
        attempt.stop()
        await attempt.exited()


@pytest.mark.mock_clock
async def test_the_fake_counts_pauses_by_the_clock_of_the_test(home: Path) -> None:
    async with FakeLauncher().open() as launcher:
        attempt = launcher.launch(order(home, "anything"))
        attempt.pause()
        await trio.sleep(3)
        attempt.pause()
        assert launcher.paused == [attempt]
        await trio.sleep(4)
        attempt.resume()
        assert launcher.paused == []
        await trio.sleep(5)
        launcher.finish(named(home))
        assert (await attempt.exited()).paused_seconds == 7
