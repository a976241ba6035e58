"""Jobs that last: asked to end, twice at most, and never made to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import trio
import trio.lowlevel

from forge_actors.edges.node import agent_lock
from forge_actors.edges.node.agent import tree
from forge_actors.edges.node.finding import end_agent, read_card
from forge_actors.edges.node.launcher import open_launcher
from tests.edges.node_jobs import (
    ROOT,
    adopted,
    named,
    opened,
    order,
    owner,
    shell,
    survivors,
)
from tests.edges.test_node_descriptors import is_free, locked, pid_of

if TYPE_CHECKING:
    from forge_actors.domain.launch import LaunchOrder
    from forge_actors.edges.node.attempt import Attempt
    from forge_actors.edges.node.launcher import NodeLauncher

#: Says each signal that it gets, and ends with what it has started, which does not.
SCRIPT = """
trap 'echo asked >> asked; echo asked' USR1
trap 'echo TERM' TERM
trap '' PIPE
sleep {lasting} & echo $!
while kill -0 $! 2>/dev/null; do wait $!; done
exit 3
"""


def worker(home: Path, lasting: str, **changes: object) -> LaunchOrder:
    script = SCRIPT.format(lasting=lasting)
    values = {"stop_signal": "SIGUSR1", "grace": 0.1, "lasting": True} | changes
    return shell(home, script, **values)


async def said(launcher: NodeLauncher, attempt: Attempt, count: int) -> list[str]:
    """The lines it has said, once there are so many."""
    log = Path(launcher._home) / "job.stdout"
    while True:
        text = log.read_text() if log.exists() else ""
        if text.count("\n") >= count or attempt.receipt is not None:
            return text.splitlines()
        await launcher.wait_output(*attempt.key, len(text))


async def test_two_stops_are_two_signals_to_its_first_process_and_no_more(
    home: Path, lasting: str
) -> None:
    async with opened(home) as launcher:
        attempt = launcher.launch(worker(home, lasting, wall=0.01, idle=0.01))
        [sleeper] = await said(launcher, attempt, 1)
        for count in (1, 2):
            attempt.stop(grace=0.0)
            assert await said(launcher, attempt, 1 + count) == (
                [sleeper] + count * ["asked"]
            )
        attempt.stop(grace=0.0)
        attempt.stop(ending="cancel")
        os.kill(int(sleeper), signal.SIGKILL)
        receipt = await attempt.exited()
        assert (receipt.exit_code, receipt.ending) == (3, "cancel")
        assert not receipt.forced
        assert await said(launcher, attempt, 3) == [sleeper, "asked", "asked"]


async def test_what_it_leaves_is_ended_after_it(home: Path, lasting: str) -> None:
    script = f"setsid sleep {lasting} & exec sleep {lasting}"
    async with opened(home) as launcher:
        attempt = launcher.launch(shell(home, script, lasting=True))
        pid = pid_of(await attempt.started())
        attempt.stop()
        receipt = await attempt.exited()
        assert (receipt.ending, receipt.signal) == ("stop", "SIGTERM")
        assert not tree.read_process(pid)
    assert not survivors(lasting)


async def test_the_end_of_its_agent_asks_once_more_and_leaves_it_alone(
    home: Path, lasting: str
) -> None:
    async with open_launcher(home) as launcher:
        attempt = launcher.launch(worker(home, lasting))
        [sleeper] = await said(launcher, attempt, 1)
        other = launcher.launch(order(home, "sleep", lasting, job="other"))
        pid = pid_of(await attempt.started())
    assert launcher._agent.process is not None
    assert launcher._agent.process.returncode == 0, "it has ended in order"
    assert attempt.receipt is None
    assert other.receipt is not None
    assert other.receipt.ending == "owner"
    assert (home / "job.stdout").read_text() == f"{sleeper}\nasked\n"
    assert tree.read_process(pid)
    # The next one waits for its end, and neither ends it nor what it runs.
    reserved = {(named(home), 1): None}
    async with opened(home) as launcher:
        await launcher.reconcile(reserved, same_boot=True)
        attempt = adopted(launcher, *next(iter(reserved)))
        assert pid_of(await attempt.started()) == pid
        attempt.stop()
        while (home / "asked").read_text() != "asked\nasked\n":
            os.sched_yield()
        assert attempt.receipt is None
    # Nor does the one after that ask for more than it may.
    async with opened(home) as launcher:
        await launcher.reconcile(reserved, same_boot=True)
        attempt = adopted(launcher, *next(iter(reserved)))
        attempt.stop()
        os.kill(int(sleeper), signal.SIGKILL)
        receipt = await attempt.exited()
        assert (receipt.ending, receipt.fence, receipt.remaining) == ("lost", 7, ())
        assert "nobody knows how it exited" in (receipt.error or "")
    assert (home / "asked").read_text() == "asked\nasked\n"
    assert not survivors(lasting)


async def test_it_outlives_its_agent_and_is_asked_directly_then(
    home: Path, lasting: str
) -> None:
    async with open_launcher(home) as launcher:
        # The sleeper is alone when its parent is gone: a leftover.
        script = f"setsid sleep {lasting} & exec sleep {lasting}"
        attempt = launcher.launch(shell(home, script, lasting=True))
        other = launcher.launch(order(home, "sleep", lasting, job="other"))
        pid = pid_of(await attempt.started())
        await other.started()
        os.kill(launcher.agent_pid, signal.SIGKILL)
        receipt = await other.exited()
        assert (receipt.ending, receipt.remaining) == ("lost", ())
        assert len(survivors(lasting)) == 2, "the other one's is gone, these are not"
        # The next agents have others, and their ends do not change that either.
        third = launcher.launch(order(home, "sleep", lasting, job="third"))
        await third.started()
        os.kill(launcher.agent_pid, signal.SIGKILL)
        assert (await third.exited()).ending == "lost"
        assert (
            await launcher.launch(order(home, "true", job="x")).exited()
        ).exit_code == 0
        assert tree.read_process(pid)
        assert attempt.receipt is None
        attempt.stop()
        receipt = await attempt.exited()
        assert (receipt.ending, receipt.remaining) == ("lost", ())
        assert not survivors(lasting)


async def test_an_agent_of_an_earlier_release_is_given_none_of_them(
    home: Path, lasting: str
) -> None:
    async with opened(home) as launcher:
        launcher._agent.ready.hands_over = False
        given = locked(home, "a")
        attempt = launcher.launch(order(home, "sleep", lasting), given)
        other = launcher.launch(worker(home, lasting, job="other"))
        for each in (attempt, other):
            receipt = await each.exited()
            assert receipt.ending == "spawn"
            assert "of an earlier release" in (receipt.error or "")
        assert given.numbers == ()
        assert is_free(home, "a")


SERVICE = """
import os, sys, trio
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.edges.node_jobs import open_launcher, order, owner
from tests.edges.test_node_descriptors import locked
from tests.edges.test_node_lasting import said, worker
home, lasting = Path(sys.argv[2]), sys.argv[3]
async def main():
    async with open_launcher(home, owner=owner(1), durable=True) as launcher:
        attempt = launcher.launch(worker(home, lasting), locked(home, "a", "b"))
        identity = await attempt.started()
        await said(launcher, attempt, 1)
        attempt.stop()
        await said(launcher, attempt, 2)
        os.write(1, str(identity.pid).encode())
        await trio.sleep_forever()
trio.run(main)
"""


async def test_locks_live_as_long_as_it_whoever_is_killed(
    durable_home: Path, lasting: str
) -> None:
    home = durable_home
    service = await trio.lowlevel.open_process(
        [sys.executable, "-c", SERVICE, str(ROOT), str(home), lasting],
        stdout=subprocess.PIPE,
    )
    async with service.stdout as output:  # type: ignore[union-attr]
        pid = int(await output.receive_some())
        service.kill()
        await service.wait()
    assert not is_free(home, "a")
    reserved = {(named(home), 1): None}
    async with open_launcher(home, owner=owner(2), durable=True) as launcher:
        await launcher.reconcile(reserved, same_boot=True)
        attempt = adopted(launcher, named(home))
        assert pid_of(await attempt.started()) == pid
        sleeper = (await said(launcher, attempt, 2))[0]
        attempt.stop()  # the second one that it is asked for
        assert await said(launcher, attempt, 3) == [sleeper, "asked", "asked"]
        attempt.stop()
        launcher.ping()
    card = read_card(home)
    assert card is not None
    os.kill(card.pid, signal.SIGKILL)
    await agent_lock.wait_for_end(home)
    assert not is_free(home, "b")
    async with opened(home, owner=owner(3), durable=True) as launcher:
        await launcher.reconcile(reserved, same_boot=True)
        attempt = adopted(launcher, named(home))
        attempt.stop()  # it has had both of its signals
        os.kill(int(sleeper), signal.SIGKILL)
        assert (await attempt.exited()).ending == "lost"
        assert is_free(home, "a", "b")
        assert (home / "asked").read_text() == "asked\nasked\n"
        launcher.forget(*attempt.key)
    await end_agent(home)
    assert not survivors(lasting)
