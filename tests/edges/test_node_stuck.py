"""What cannot be ended: it is named with its reason, and everything else goes on."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.edges.node.agent.cgroup import find_place
from forge_actors.edges.node.sweep import still_alive
from tests.edges.node_jobs import ROOT, opened, order, shell, survivors

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

#: Of the first version of cgroups: what is frozen by it does not act on SIGKILL either.
FREEZER = Path("/sys/fs/cgroup/freezer")


@contextmanager
def held_by_the_kernel(pids: Iterable[int]) -> Generator[None, None, None]:
    folder = FREEZER / f"forge-actors-test-{os.getpid()}"
    folder.mkdir()
    try:
        for pid in pids:
            (folder / "cgroup.procs").write_text(str(pid))
        (folder / "freezer.state").write_text("FROZEN")
        yield
    finally:
        (folder / "freezer.state").write_text("THAWED")
        for pid in map(int, (folder / "cgroup.procs").read_text().split()):
            os.kill(pid, signal.SIGKILL)
        while (folder / "cgroup.procs").read_text():
            os.sched_yield()
        folder.rmdir()


@pytest.mark.skipif(
    not os.access(FREEZER / "cgroup.procs", os.W_OK),
    reason="needs root and a freezer of cgroup version 1",
)
async def test_what_the_kernel_holds_is_named_and_others_go_on(
    home: Path, lasting: str
) -> None:
    async with opened(home) as launcher:
        alone = launcher.launch(order(home, "sleep", lasting, job="alone"))
        leader = await alone.started()
        script = f"sleep {lasting} & echo $!; wait"
        wanted = shell(home, script, job="parent")
        parent = launcher.launch(wanted)
        await launcher.wait_output(wanted.job, 1, 0)
        child = int(Path(wanted.log + ".stdout").read_text())
        assert leader is not None
        with held_by_the_kernel([leader.pid, child]):
            for attempt in (alone, parent):
                attempt.stop(grace=0.2)
            other = await launcher.launch(order(home, "true", job="other")).exited()
            assert other.exit_code == 0
            assert (alone.receipt, parent.receipt) == (None, None)
            # The leader is not collected: nobody knows how it will end.
            receipt = await alone.exited()
            assert (receipt.ending, receipt.exit_code, receipt.signal) == (
                "stop",
                None,
                None,
            )
            assert receipt.remaining == (leader,)
            why = f"process {leader.pid} sleep does not end: the kernel holds it"
            assert receipt.error == why
            receipt = await parent.exited()
            assert (receipt.ending, receipt.signal) == ("stop", "SIGTERM")
            assert [each.pid for each in receipt.remaining] == [child]
            left = (leader, *receipt.remaining)
            assert still_alive(left) == left
        assert still_alive(left) == ()
        assert not survivors(lasting)


#: Runs an agent that may not end what has another user, and sweeps as one that may not.
OWNER = """
import json, shlex, sys, trio
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from forge_actors.domain.launch import ProcessLimits
from forge_actors.edges.node.sweep import sweep
from tests.edges.node_jobs import open_launcher, order, shell, stop_when_ready
home, lasting = Path(sys.argv[2]), sys.argv[3]
async def main():
    async with open_launcher(home) as launcher:
        older = launcher.launch(order(home, "sleep", "60", job="older"))
        await older.started()
        other = f"setpriv --reuid=65534 sh -c 'echo $$; exec sleep {lasting}'"
        wanted = shell(home, f"trap 'exit 0' TERM; {other} & wait")
        receipt = await stop_when_ready(launcher, wanted, grace=0.2)
        leader = order(home, *shlex.split(other), job="leader")
        alone = await stop_when_ready(launcher, leader, grace=0.2)
        limits = ProcessLimits(memory=1 << 40)
        within = order(home, *shlex.split(other), job="within", limits=limits)
        contained = await stop_when_ready(launcher, within, grace=0.2)
        older.stop()
        old = await older.exited()
        after = await launcher.launch(order(home, "true", job="after")).exited()
    swept = await sweep({(wanted.job, 1): None})
    print(json.dumps([
        receipt.error, [each.pid for each in receipt.remaining],
        alone.error, [each.pid for each in alone.remaining], alone.identity.pid,
        [each.pid for each in contained.remaining], contained.identity.pid,
        old.error, after.exit_code, [each.pid for each in swept[wanted.job, 1]],
    ]))
trio.run(main)
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="needs root, and setpriv to give up the right to end processes of others",
)
def test_what_refuses_the_kill_is_named_and_others_go_on(
    home: Path, lasting: str
) -> None:
    command = [sys.executable, "-c", OWNER, str(ROOT), str(home), lasting]
    done = subprocess.run(
        ["setpriv", "--bounding-set=-kill", *command],
        capture_output=True,
        text=True,
        timeout=60,
    )
    try:
        assert done.stderr == ""
        answer: list[Any] = json.loads(done.stdout)
        child = int((home / "job.stdout").read_text())
        error, remaining, *answer, older_error, after, swept = answer
        alone_error, alone, leader, contained, within = answer
        refused = r"process {} \w+ may not be ended by this user"
        assert re.fullmatch(refused.format(child), error)
        assert remaining == swept == [child]
        assert re.fullmatch(refused.format(leader), alone_error)
        assert alone == [leader]
        # Not taken for its own by a job that is as old.
        assert older_error is None
        assert after == 0
        # Who may write to a cgroup may end whatever is in it.
        refusing = [within] if find_place().folder is None else []
        assert contained == refusing
        assert len(survivors(lasting)) == 2 + len(refusing)
    finally:
        for line in survivors(lasting):
            os.kill(int(line.split()[0]), signal.SIGKILL)
