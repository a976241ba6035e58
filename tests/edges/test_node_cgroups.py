"""Jobs with limits in cgroups of their own, where this machine lets us make them."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import convert

from forge_actors.domain.launch import (
    LaunchOrder,
    ProcessIdentity,
    ProcessLimits,
    Receipt,
)
from forge_actors.edges.node.agent import cgroup, tree
from forge_actors.edges.node.agent.cgroup import Cgroup, Cgroups
from forge_actors.edges.node.agent.limits import Limits, Preparation
from forge_actors.edges.node.agent.receipt import receipt_of
from forge_actors.edges.node.launcher import open_launcher
from forge_actors.edges.node.sweep import sweep
from tests.edges.node_jobs import (
    DOUBLE_FORK,
    opened,
    order,
    run,
    shell,
    survivors,
    text,
)

PLACE = cgroup.find_place()
here = pytest.mark.skipif(
    PLACE.folder is None, reason=f"needs cgroups of our own: {PLACE.reason}"
)
LIMITED = ProcessLimits(memory=1 << 40)


def folders(job: str) -> list[Path]:
    assert PLACE.folder is not None
    return list(Path(PLACE.folder).glob(f"forge-actors-*/{job}.*"))


def place_of(wanted: LaunchOrder) -> Path:
    """Where the cgroup is that a job printed as its own."""
    [line] = [line for line in text(wanted).splitlines() if line.startswith("0::")]
    name = Path(line).name
    assert name == f"{wanted.job}.1"
    assert PLACE.folder is not None
    return Path(PLACE.folder) / Path(line).parent.name / name


@here
async def test_a_job_with_a_limit_is_in_a_cgroup_of_its_own(home: Path) -> None:
    limited = shell(home, "cat /proc/self/cgroup", limits=LIMITED)
    terminal = shell(
        home, "cat /proc/self/cgroup", job="terminal", limits=LIMITED, pty=True
    )
    nice = shell(
        home, "cat /proc/self/cgroup", job="nice", limits=ProcessLimits(nice=1)
    )
    free = shell(home, "cat /proc/self/cgroup", job="free")
    receipts = await run(home, limited, terminal, nice, free)
    assert [receipt.exit_code for receipt in receipts] == [0] * 4
    agents = {place_of(wanted).parent for wanted in (limited, terminal)}
    [agent] = agents
    for wanted in (nice, free):
        assert text(wanted).endswith(f"/{agent.name}/agent\n")
    # It is that of one agent, which is gone.
    assert [agent.exists() for agent in agents] == [False]


@here
async def test_the_command_after_a_job_has_a_cgroup_too(home: Path) -> None:
    wanted = shell(
        home, "true", limits=LIMITED, after_job="grep ^0:: /proc/self/cgroup"
    )
    await run(home, wanted)
    assert text(wanted).endswith(f"/{wanted.job}.1\n")
    assert folders(wanted.job) == []


@here
async def test_a_start_that_fails_leaves_no_cgroup(home: Path) -> None:
    wanted = order(home, "/no/program", limits=LIMITED)
    async with opened(home) as launcher:
        receipt = await launcher.launch(wanted).exited()
        assert receipt.ending == "spawn"
        assert folders(wanted.job) == []


@here
async def test_what_hides_from_all_else_is_in_the_cgroup(
    home: Path, lasting: str
) -> None:
    """Another job that is as old would otherwise have to be waited for."""
    daemon = [sys.executable, "-c", DOUBLE_FORK, lasting, "-i"]
    async with opened(home) as launcher:
        older = launcher.launch(order(home, "sleep", "60", job="older"))
        await older.started()
        wanted = order(home, *daemon, limits=LIMITED)
        receipt = await launcher.launch(wanted).exited()
        assert [each.split()[1] for each in receipt.leftovers] == ["sleep"]
        assert not survivors(lasting)
        older.stop()
        await older.exited()


@here
async def test_what_forks_all_the_time_is_ended_at_once(
    home: Path, lasting: str
) -> None:
    program = (
        "import os, signal, sys\n"
        "for number in signal.Signals:\n"
        "    if number not in (9, 17, 19): signal.signal(number, signal.SIG_IGN)\n"
        "os.write(1, b'ready')\n"
        "while True:\n"
        "    if os.fork(): os._exit(0)\n"
        "    os.setsid()\n"
    )
    wanted = order(home, sys.executable, "-c", program, lasting, limits=LIMITED)
    async with opened(home) as launcher:
        attempt = launcher.launch(wanted)
        await launcher.wait_output(wanted.job, 1, 0)
        attempt.stop(grace=0.0)
        receipt = await attempt.exited()
        assert receipt.forced
        assert receipt.remaining == ()
        assert not survivors(lasting)


@here
async def test_a_dead_agents_cgroups_are_emptied_and_removed(
    home: Path, lasting: str
) -> None:
    """Found in it: a daemon without mark, session or parent. Empty: that of `calm`."""
    daemon = [sys.executable, "-c", DOUBLE_FORK, lasting, "-i"]
    async with open_launcher(home) as launcher:
        wild = order(home, *daemon, job="wild", limits=LIMITED, keep_leftovers=True)
        (await launcher.launch(wild).exited())
        script = f"echo; exec sleep {lasting}"
        calm = launcher.launch(shell(home, script, job="calm", limits=LIMITED))
        await launcher.wait_output(calm.key[0], 1, 0)
        assert len(survivors(lasting)) == 2
        agents = {place.parent for place in folders(wild.job) + folders(calm.key[0])}
        os.kill(launcher.agent_pid, signal.SIGKILL)
        receipt = await calm.exited()
        assert (receipt.ending, receipt.remaining) == ("lost", ())
        assert folders(calm.key[0]) == []
        assert len(survivors(lasting)) == 1
        assert await sweep({(wild.job, 1): None}) == {(wild.job, 1): ()}
        assert not survivors(lasting)
        assert [agent.exists() for agent in agents] == [False]


@here
async def test_a_cgroup_that_somebody_stays_in_is_removed_when_he_is_gone(
    home: Path, lasting: str
) -> None:
    daemon = [sys.executable, "-c", DOUBLE_FORK, lasting]
    wanted = order(home, *daemon, limits=LIMITED, keep_leftovers=True)
    await run(home, wanted)
    cgroup.remove_stale()
    [place] = folders(wanted.job)
    [pid] = Cgroup(str(place)).pids()
    os.kill(pid, signal.SIGKILL)
    while Cgroup(str(place)).populated():
        os.sched_yield()
    cgroup.remove_stale()
    assert not place.parent.exists()


@here
async def test_nobody_removes_the_cgroups_of_an_agent_that_lives(home: Path) -> None:
    async with opened(home) as launcher:
        wanted = shell(home, "cat /proc/self/cgroup", limits=LIMITED)
        await launcher.launch(wanted).exited()
        agent = place_of(wanted).parent
        cgroup.remove_stale()
        assert agent.exists()
    assert not agent.exists()


@here
async def test_what_hides_in_a_cgroup_below_that_of_its_job_is_found(
    home: Path, lasting: str
) -> None:
    """With an older job beside it nothing else would tell whose it is."""
    assert PLACE.folder is not None
    script = (
        "import os, pathlib, sys\n"
        "path = pathlib.Path('/proc/self/cgroup').read_text()\n"
        "path = path.split('0::')[1].split()[0]\n"
        f"below = pathlib.Path({PLACE.folder!r}, *path.split('/')[-2:], 'below')\n"
        "below.mkdir()\n"
        "(below / 'cgroup.procs').write_text('0')\n" + DOUBLE_FORK
    )
    async with opened(home) as launcher:
        older = launcher.launch(order(home, "sleep", "60", job="older"))
        await older.started()
        wanted = order(
            home, sys.executable, "-c", script, lasting, "-i", limits=LIMITED
        )
        receipt = await launcher.launch(wanted).exited()
        assert receipt.exit_code == 0, receipt.stderr_tail
        assert [each.split()[1] for each in receipt.leftovers] == ["sleep"]
        assert not survivors(lasting)
        assert folders(wanted.job) == []
        older.stop()
        await older.exited()


def test_where_no_cgroup_can_be_made_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = cgroup.Place(str(tmp_path / "gone"), frozenset(), "")
    for place in (nowhere, cgroup.Place(None, frozenset(), "no cgroup version 2")):
        monkeypatch.setattr(cgroup, "find_place", lambda place=place: place)
        assert Cgroups("instance").make(("job", 1)) is None


@pytest.fixture
def delegated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the kernel would put there."""
    below = tmp_path / "service"
    below.mkdir()
    for folder in (tmp_path, below):
        (folder / "cgroup.procs").touch()
        (folder / "cgroup.type").touch()
        (folder / "cgroup.controllers").write_text("cpu memory pids\n")
        (folder / "cgroup.subtree_control").touch()
    monkeypatch.setattr(cgroup, "_own_folder", lambda: str(below))
    return tmp_path


def test_a_cgroup_with_processes_in_it_gives_no_controllers(delegated: Path) -> None:
    place = cgroup.find_place()
    assert place[:2] == (str(delegated / "service"), frozenset())
    assert "DelegateSubgroup=" in place.reason


def test_beside_us_is_the_place_where_that_is_delegated(delegated: Path) -> None:
    try:
        os.setxattr(delegated, "user.delegate", b"1")
    except OSError:
        pytest.skip("needs a file system with extended attributes")
    place = cgroup.find_place()
    assert place == (str(delegated), frozenset({"memory", "pids"}), "")
    assert Cgroups("one").make(("job", 1)) is not None
    assert (delegated / "cgroup.subtree_control").read_text().startswith("+")
    assert (delegated / "forge-actors-one" / "job.1").is_dir()


def test_limits_are_those_of_the_cgroup_where_it_has_them(tmp_path: Path) -> None:
    for name in ("cgroup.procs", "memory.max", "pids.max"):
        (tmp_path / name).touch()
    limits = Preparation(Limits(0, 5 << 20, 7), Cgroup(str(tmp_path)))
    limits.close()
    assert (tmp_path / "memory.max").read_text() == str(5 << 20)
    assert (tmp_path / "pids.max").read_text() == "7"
    assert limits._limits == []


def test_what_the_kernel_ended_for_its_memory_is_known(tmp_path: Path) -> None:
    group = Cgroup(str(tmp_path))
    assert not group.out_of_memory()
    for count in (0, 2):
        (tmp_path / "memory.events").write_text(f"low 0\noom 1\noom_kill {count}\n")
        assert group.out_of_memory() == (count > 0)


def test_the_receipt_tells_that_memory_was_short(tmp_path: Path) -> None:
    (tmp_path / "memory.events").write_text("oom_kill 1\n")
    group = Cgroup(str(tmp_path))
    stream = SimpleNamespace(total=0, kept=0, tail=b"", error=None)
    job = SimpleNamespace(
        streams=(stream, stream),
        key=("job", 1),
        ending="exit",
        started_at=1.0,
        pid=99,
        start=7,
        status=signal.SIGKILL,
        usage=None,
        forced=False,
        paused_seconds=0.0,
        leftovers=[],
        output_held=False,
        spared={(os.getpid(), tree.start_ticks(os.getpid())): None, (1, -1): None},
        problems=["a reason"],
        order=SimpleNamespace(cgroup=group, outputs=None, worktree=None),
    )
    told = {**receipt_of(cast("Any", job), "boot", 3), "fence": 2}
    receipt = convert(told, Receipt)
    assert (receipt.signal, receipt.out_of_memory) == ("SIGKILL", True)
    assert receipt.identity == ProcessIdentity("boot", 99, 7, 3)
    assert [each.pid for each in receipt.remaining] == [os.getpid()]
    assert receipt.error == "a reason"
