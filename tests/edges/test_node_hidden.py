"""What hides from all else when its agent is killed: found in the agent's cgroup."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.edges.node import agent_lock
from forge_actors.edges.node.agent import cgroup
from forge_actors.edges.node.agent.cgroup import Cgroups
from forge_actors.edges.node.finding import read_card
from forge_actors.edges.node.sweep import sweep
from tests.edges.node_jobs import (
    ROOT,
    adopted,
    lasting_time,
    named,
    opened,
    order,
    owner,
    survivors,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

PLACE = cgroup.find_place()
pytestmark = pytest.mark.skipif(
    PLACE.folder is None, reason=f"needs cgroups of our own: {PLACE.reason}"
)

#: Starts a process that has no environment, no parent, a session and no open file of
#: its job, and goes on itself.
HIDING = """
import os, signal, sys
ends = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(0, 3)
    os.execve(sys.argv[1], ["sleep", sys.argv[2]], {})
os.close(ends[1])
os.wait()
os.read(ends[0], 1)
print("hidden", flush=True)
if sys.argv[3:]:
    signal.pause()
"""


#: An agent that starts another, and is gone; each has started a process.
NESTED = """
import os, subprocess, sys
sys.path.insert(0, sys.argv[1])
from forge_actors.edges.node.agent.cgroup import Cgroups
agent = Cgroups(sys.argv[2])
assert agent.enter()
subprocess.Popen(["/bin/sleep", sys.argv[3]], stdout=2, env={}, start_new_session=True)
if sys.argv[4:]:
    inner = [*sys.argv[:2], *sys.argv[4:]]
    program = sys.orig_argv[2]
    subprocess.Popen([sys.executable, "-c", program, *inner[1:]], env={})
    os._exit(0)
print(os.getpid(), flush=True)
os.close(1)
import signal
signal.pause()
"""


def hiding(lasting: str, *, stays: bool = True) -> list[str]:
    """A command that tells when the process is hidden."""
    command = [sys.executable, "-c", HIDING, "/bin/sleep", lasting]
    return [*command, "stay"] if stays else command


@pytest.fixture
def kept() -> Iterator[str]:
    """A time to sleep of what nobody of us ends."""
    lasting = lasting_time()
    yield lasting
    for line in survivors(lasting):
        os.kill(int(line.split()[0]), signal.SIGKILL)


def cgroups_of(instance: str) -> Path:
    assert PLACE.folder is not None
    return Path(PLACE.folder) / f"forge-actors-{instance}"


async def kill_agent(home: Path) -> str:
    """The instance of the agent that was killed."""
    card = read_card(home)
    assert card is not None
    os.kill(card.pid, signal.SIGKILL)
    await agent_lock.wait_for_end(home)
    return card.instance


@pytest.mark.parametrize("adopts", [False, True], ids=["same service", "next service"])
async def test_it_is_gone_before_its_attempt_is_told_lost(
    durable_home: Path, lasting: str, kept: str, adopts: bool
) -> None:
    """A stranger with the same look, outside of the cgroup, is not touched."""
    home = durable_home
    stranger = await trio.lowlevel.open_process(
        ["/bin/sleep", kept], env={}, start_new_session=True
    )
    wanted = order(home, *hiding(lasting))
    async with opened(home, owner=owner(1), durable=True) as launcher:
        attempt = launcher.launch(wanted)
        identity = await attempt.started()
        await launcher.wait_output(wanted.job, 1, 0)
        assert len([line for line in survivors(lasting) if "-c" not in line]) == 1
        if not adopts:
            instance = await kill_agent(home)
            receipt = await attempt.exited()
            assert not survivors(lasting)
    if adopts:
        instance = await kill_agent(home)
        assert len(survivors(lasting)) == 2
        async with opened(home, owner=owner(2), durable=True) as launcher:
            reserved = {(wanted.job, 1): identity}
            await launcher.reconcile(reserved, same_boot=True)
            assert not survivors(lasting)
            receipt = await adopted(launcher, wanted.job).exited()
    assert (receipt.ending, receipt.remaining) == ("lost", ())
    assert not cgroups_of(instance).exists()
    assert stranger.poll() is None
    stranger.kill()
    await stranger.wait()


async def test_a_kept_leftover_of_a_finished_job_survives(
    durable_home: Path, lasting: str, kept: str
) -> None:
    home = durable_home
    script = f"setsid sleep {kept} >/dev/null 2>&1 & echo"
    done = order(home, "bash", "-c", script, job="done", keep_leftovers=True)
    wanted = order(home, *hiding(lasting))
    async with opened(home, durable=True) as launcher:
        assert (await launcher.launch(done).exited()).exit_code == 0
        attempt = launcher.launch(wanted)
        await launcher.wait_output(wanted.job, 1, 0)
        instance = await kill_agent(home)
        assert (await attempt.exited()).ending == "lost"
        assert not survivors(lasting)
        [line] = survivors(kept)
    # Somebody is in it still; it goes when he does.
    assert cgroups_of(instance).exists()
    os.kill(int(line.split()[0]), signal.SIGKILL)
    while cgroup.Cgroup(str(cgroups_of(instance))).populated():
        os.sched_yield()
    cgroup.remove_stale()
    assert not cgroups_of(instance).exists()


async def test_what_was_kept_and_hides_is_left_where_no_attempt_is_lost(
    durable_home: Path, kept: str
) -> None:
    home = durable_home
    command = hiding(kept, stays=False)
    wanted = order(home, *command, keep_leftovers=True)
    async with opened(home, durable=True) as launcher:
        receipt = await launcher.launch(wanted).exited()
        assert receipt.exit_code == 0
        await kill_agent(home)
        attempt = launcher.launch(order(home, "true", job="next"))
        assert (await attempt.exited()).exit_code == 0
        assert len(survivors(kept)) == 1


async def test_the_cgroup_of_an_agent_that_lives_is_not_touched(
    durable_home: Path, kept: str
) -> None:
    home = durable_home
    wanted = order(home, *hiding(kept))
    async with opened(home, durable=True) as launcher:
        attempt = launcher.launch(wanted)
        await launcher.wait_output(wanted.job, 1, 0)
        card = read_card(home)
        assert card is not None
        key = (named(home, "other"), 1)
        assert await sweep({key: None}, {key: card.instance}) == {key: ()}
        assert len(survivors(kept)) == 2
        attempt.stop(grace=0.0)
        await attempt.exited()


async def test_an_agent_that_a_job_has_started_keeps_what_is_its_own(
    lasting: str, kept: str
) -> None:
    """Until it is dead too. Nothing here has any environment."""
    outer, inner = f"outer-{kept}", f"inner-{kept}"
    command = [sys.executable, "-c", NESTED, str(ROOT), outer, lasting, inner, kept]
    process = await trio.lowlevel.open_process(
        command, env={}, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    async with process.stdout as output:
        pid = int(await output.receive_some())
        await process.wait()
    keys = {("job-of-outer", 1): outer}
    lost = dict.fromkeys(keys)
    assert await sweep(lost, keys) == {("job-of-outer", 1): ()}
    assert [len(survivors(each)) for each in (lasting, kept)] == [0, 2]
    os.kill(pid, signal.SIGKILL)
    assert await sweep(lost, keys) == {("job-of-outer", 1): ()}
    assert not survivors(kept)
    assert not cgroups_of(outer).exists()


async def test_nothing_is_left_of_the_cgroup_of_an_agent_that_ends(home: Path) -> None:
    wanted = order(home, "cat", "/proc/self/cgroup")
    async with opened(home) as launcher:
        await launcher.launch(wanted).exited()
        [inside] = cgroup.of_process(launcher.agent_pid)
        assert text(wanted).endswith(f"0::{inside.path}/agent\n")
        assert cgroups_of(inside.instance).exists()
    assert not cgroups_of(inside.instance).exists()


def test_a_job_that_starts_agents_is_in_the_cgroups_of_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = "/unit/forge-actors-a/agent/forge-actors-b/job.7/below"
    monkeypatch.setattr(cgroup, "_path_of", lambda _: path)
    outer, inner = cgroup.of_process(1)
    assert outer == ("a", "/unit/forge-actors-a", None)
    assert inner == ("b", "/unit/forge-actors-a/agent/forge-actors-b", ("job", 7))


def test_where_it_cannot_be_entered_the_agent_goes_on_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is no cgroup, and one that cannot be made."""
    before = Path("/proc/self/cgroup").read_text()
    for folder in (str(tmp_path), str(tmp_path / "gone"), None):
        place = cgroup.Place(folder, frozenset(), "")
        monkeypatch.setattr(cgroup, "find_place", lambda place=place: place)
        cgroups = Cgroups("one")
        assert not cgroups.enter()
        cgroups.close()
    assert Path("/proc/self/cgroup").read_text() == before
    assert list(tmp_path.iterdir()) == []
