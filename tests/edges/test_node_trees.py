"""Whatever a job starts, however it hides: nothing of it outlives the job."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path

import pytest
import trio
import trio.testing

from forge_actors.edges.node.agent import tree
from tests.edges.node_jobs import (
    ASLEEP,
    DOUBLE_FORK,
    lasting_time,
    named,
    opened,
    order,
    run,
    shell,
    stop_when_ready,
    survivors,
    text,
)


async def test_a_grandchild_that_holds_the_output_does_not_delay_the_end(
    home: Path, lasting: str
) -> None:
    wanted = shell(home, f"setsid sleep {lasting} & {ASLEEP}; echo done")
    (receipt,) = await run(home, wanted)
    assert (receipt.ending, receipt.exit_code) == ("exit", 0)
    assert receipt.output_held
    assert len(receipt.leftovers) == 1
    assert receipt.leftovers[0].endswith(" sleep")
    assert text(wanted) == "done\n"
    assert not survivors(lasting)


async def test_stop_ends_the_whole_pipeline(home: Path, lasting: str) -> None:
    async with opened(home) as launcher:
        wanted = shell(home, f"echo; sleep {lasting} | cat")
        receipt = await stop_when_ready(launcher, wanted)
        assert receipt.ending == "stop"
        assert receipt.signal == "SIGTERM"
        assert not receipt.forced
        assert not survivors(lasting)


@pytest.mark.parametrize("emptied", [[], ["-i"]], ids=["marked", "unmarked"])
async def test_stop_reaches_daemons_in_sessions_of_their_own(
    home: Path, lasting: str, emptied: list[str]
) -> None:
    daemon = shlex.join([sys.executable, "-c", DOUBLE_FORK, lasting, *emptied])
    async with opened(home) as launcher:
        receipt = await stop_when_ready(launcher, shell(home, f"{daemon}; sleep 60"))
        assert receipt.ending == "stop"
        assert not receipt.forced
        assert not survivors(lasting)


@pytest.mark.parametrize("emptied", [[], ["-i"]], ids=["marked", "unmarked"])
async def test_a_daemon_is_left_over_when_its_job_ends(
    home: Path, lasting: str, emptied: list[str]
) -> None:
    daemon = [sys.executable, "-c", DOUBLE_FORK, lasting, *emptied]
    (receipt,) = await run(home, order(home, *daemon))
    assert (receipt.ending, receipt.exit_code) == ("exit", 0)
    assert [each.split()[1] for each in receipt.leftovers] == ["sleep"]
    assert not survivors(lasting)


async def test_an_unmarked_daemon_lives_as_long_as_a_job_it_may_belong_to(
    home: Path, lasting: str
) -> None:
    daemon = [sys.executable, "-c", DOUBLE_FORK, lasting, "-i"]
    async with opened(home) as launcher:
        older = launcher.launch(order(home, "sleep", "60", job="older"))
        await older.started()
        receipt = await launcher.launch(order(home, *daemon, job="daemon")).exited()
        assert receipt.leftovers == ()
        assert len(survivors(lasting)) == 1
        older.stop()
        receipt = await older.exited()
        assert (receipt.ending, receipt.forced) == ("stop", False)
        assert not survivors(lasting)


async def test_the_grace_covers_what_outlives_a_polite_leader(
    home: Path, lasting: str
) -> None:
    script = (
        f'trap "exit 0" TERM; (trap "" TERM; echo; exec sleep {lasting}) & wait; wait'
    )
    async with opened(home) as launcher:
        receipt = await stop_when_ready(launcher, shell(home, script), grace=0.3)
        assert (receipt.ending, receipt.exit_code) == ("stop", 0)
        assert receipt.forced
        assert not survivors(lasting)


async def test_a_job_that_ignores_the_stop_signal_is_killed_after_the_grace(
    home: Path, lasting: str
) -> None:
    script = f'trap "" TERM; echo; while :; do sleep 0.2; : {lasting}; done'
    async with opened(home) as launcher:
        began = trio.current_time()
        receipt = await stop_when_ready(launcher, shell(home, script), grace=0.5)
        assert trio.current_time() - began >= 0.5
        assert (receipt.ending, receipt.signal) == ("stop", "SIGKILL")
        assert receipt.forced
        assert not survivors(lasting)


async def test_a_second_stop_shortens_the_grace_and_never_lengthens_it(
    home: Path,
) -> None:
    script = 'trap "" TERM; echo; while :; do sleep 0.2; done'
    async with opened(home) as launcher:
        attempt = launcher.launch(shell(home, script))
        await launcher.wait_output(named(home), 1, 0)
        attempt.stop(grace=60)
        attempt.stop(grace=0.1, ending="wall")
        attempt.stop(grace=60)
        receipt = await attempt.exited()
        assert (receipt.ending, receipt.forced) == ("stop", True)


async def test_the_stop_signal_is_sent_once_and_clean_up_is_left_alone(
    home: Path,
) -> None:
    script = """
    trap 'echo stop; sleep 0.3 && echo cleaned; exit 0' INT
    echo ready
    while :; do sleep 0.05; done
    """
    wanted = shell(home, script, stop_signal="SIGINT")
    async with opened(home) as launcher:
        receipt = await stop_when_ready(launcher, wanted)
    assert receipt.exit_code == 0
    assert text(wanted) == "ready\nstop\ncleaned\n"


async def test_last_words_reach_the_log(home: Path) -> None:
    wanted = shell(
        home, 'trap "echo bye; exit 0" TERM; echo; while :; do sleep .1; done'
    )
    async with opened(home) as launcher:
        await stop_when_ready(launcher, wanted)
    assert text(wanted).endswith("bye\n")


async def test_a_stopped_job_can_be_stopped_politely(home: Path) -> None:
    script = 'trap "echo bye; exit 0" TERM; echo; kill -STOP $$; sleep 60'
    wanted = shell(home, script)
    async with opened(home) as launcher:
        receipt = await stop_when_ready(launcher, wanted)
    assert receipt.exit_code == 0
    assert not receipt.forced
    assert text(wanted) == "\nbye\n"


async def test_killing_only_the_leader_ends_the_rest(home: Path, lasting: str) -> None:
    async with opened(home) as launcher:
        attempt = launcher.launch(shell(home, f"echo; sleep {lasting}; true"))
        identity = await attempt.started()
        assert identity is not None
        await launcher.wait_output(named(home), 1, 0)
        os.kill(identity.pid, signal.SIGKILL)
        receipt = await attempt.exited()
        assert (receipt.ending, receipt.signal) == ("exit", "SIGKILL")
        assert not survivors(lasting)


async def test_leftovers_may_stay_if_the_job_says_so(home: Path, lasting: str) -> None:
    wanted = shell(
        home, f"setsid sleep {lasting} & {ASLEEP}; echo", keep_leftovers=True
    )
    try:
        async with opened(home) as launcher:
            receipt = await launcher.launch(wanted).exited()
            # A job that ends next to it must not take it along either.
            await launcher.launch(order(home, "true", job="next")).exited()
        assert receipt.output_held
        assert len(receipt.leftovers) == 1
        assert len(survivors(lasting)) == 1
    finally:
        for line in survivors(lasting):
            os.kill(int(line.split()[0]), signal.SIGKILL)


async def test_stop_right_after_launch_ends_the_job(home: Path, lasting: str) -> None:
    async with opened(home) as launcher:
        attempts = []
        for number in range(50):
            wanted = order(home, "sleep", lasting, job=f"job-{number}")
            attempts.append(launcher.launch(wanted))
            attempts[-1].stop()
        for attempt in attempts:
            assert (await attempt.exited()).ending == "stop"
        assert not survivors(lasting)


async def test_jobs_that_fork_twice_leave_no_defunct_child(home: Path) -> None:
    script = "(setsid true &) & (sleep 0.01 &)"
    async with opened(home) as launcher:
        attempts = [
            launcher.launch(shell(home, script, job=f"job-{number}"))
            for number in range(200)
        ]
        for attempt in attempts:
            assert (await attempt.exited()).exit_code == 0
        # An orphan that died a moment before the last receipt is collected right after.
        await launcher.launch(order(home, "true")).exited()
        children = [
            process
            for process in tree.Snapshot().processes.values()
            if process.parent == launcher.agent_pid
        ]
        assert children == []


#: Forks twice, into a session of its own each time, closes everything it has, and
#: then runs `env ARGV[2:] sleep ARGV[1]`.
HIDE = """
import os, sys
for _ in range(2):
    if os.fork():
        os._exit(0)
    os.setsid()
null = os.open(os.devnull, os.O_RDWR)
for fd in range(3):
    os.dup2(null, fd)
os.chdir("/")
os.execvp("env", ["env", *sys.argv[2:], "sleep", sys.argv[1]])
"""


@pytest.mark.parametrize("emptied", [[], ["-i"]], ids=["marked", "unmarked"])
async def test_stop_leaves_nothing_of_a_job_that_hides_fifty_times_of_fifty(
    home: Path, emptied: list[str]
) -> None:
    async with opened(home) as launcher:
        for number in range(50):
            lasting = lasting_time()
            daemon = shlex.join([sys.executable, "-I", "-c", HIDE, lasting, *emptied])
            wanted = shell(home, f"{daemon}; echo; sleep 60", job=f"job-{number}")
            attempt = launcher.launch(wanted)
            # It is stopped before, while and after it hides.
            if number % 3:
                await launcher.wait_output(wanted.job, 1, 0)
            elif number % 2:
                await attempt.started()
            # What forks at the moment of the signal runs until the grace is over.
            attempt.stop(grace=0.2)
            assert (await attempt.exited()).ending == "stop"
            assert not survivors(lasting), number


async def test_kept_leftovers_outlive_an_older_job_as_well(
    home: Path, lasting: str
) -> None:
    """The older one ran when they began, so they could be taken for its own."""
    daemon = [sys.executable, "-c", DOUBLE_FORK, lasting]
    try:
        async with opened(home) as launcher:
            older = launcher.launch(order(home, "sleep", "60", job="older"))
            await older.started()
            wanted = order(home, *daemon, job="keeper", keep_leftovers=True)
            receipt = await launcher.launch(wanted).exited()
            assert len(receipt.leftovers) == 1
            older.stop()
            await older.exited()
            assert len(survivors(lasting)) == 1
    finally:
        for line in survivors(lasting):
            os.kill(int(line.split()[0]), signal.SIGKILL)


async def test_what_carries_the_mark_is_ended_whoever_started_it(
    home: Path, lasting: str
) -> None:
    wanted = order(home, "sleep", "60")
    async with opened(home) as launcher:
        attempt = launcher.launch(wanted)
        await attempt.started()
        # Its end is no news to the agent, so this also needs a fresh look each time.
        helper = await trio.lowlevel.open_process(["sleep", lasting], env=wanted.env)
        attempt.stop()
        assert not (await attempt.exited()).forced
        assert await helper.wait() == -signal.SIGTERM
