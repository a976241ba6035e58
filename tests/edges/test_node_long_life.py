"""An agent that lives long: through upgrades, and where the system has no room."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import resource
import shutil
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest
import trio
import trio.lowlevel

from forge_actors.domain.errors import LauncherDown
from forge_actors.domain.launch import AfterJob, ProcessLimits, Secrets
from forge_actors.edges.node import agent_process, successors, wire
from forge_actors.edges.node.finding import find_agent
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

if TYPE_CHECKING:
    from collections.abc import Iterator


async def test_an_agent_works_on_when_the_files_it_was_started_from_are_gone(
    durable_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = durable_home
    copy = tmp_path / "installed"
    shutil.copytree(ROOT / "forge_actors", copy / "forge_actors")
    program = copy / "forge_actors" / "edges" / "node" / "agent" / "__main__.py"
    monkeypatch.setattr(agent_process, "_PROGRAM", str(program))
    orders = [
        order(home, "true", job="plain"),
        order(home, "true", job="terminal", pty=True),
        order(home, "true", job="limits", limits=ProcessLimits(nice=1, memory=1 << 30)),
        order(home, "echo", "s3cret", job="secret", secrets=Secrets(TOKEN="s3cret")),
        shell(home, "true", job="after", after_job="exit 3"),
        shell(home, "setsid sleep 60 & exit 2", job="leaves", keep_leftovers=False),
        order(home, "no-such-program", job="missing"),
    ]
    async with opened(home, durable=True) as launcher:
        shutil.rmtree(copy)
        (home / "agent.sock").unlink()
        runs = launcher.launch(order(home, "sleep", "60", job="runs"))
        await runs.started()
        os.kill(launcher.agent_pid, signal.SIGHUP)
        receipts = [await launcher.launch(each).exited() for each in orders]
        assert [each.exit_code for each in receipts] == [0, 0, 0, 0, 0, 2, None]
        assert receipts[4].after_job == AfterJob(exit_code=3)
        assert "no program" in (receipts[6].error or "")
        runs.pause()
        runs.stop()
        assert (await runs.exited()).ending == "stop"


async def test_an_idle_agent_of_another_release_makes_room_for_one_of_ours(
    durable_home: Path, lasting: str
) -> None:
    home = durable_home
    async with opened(home, owner=owner(1, "r1"), durable=True) as launcher:
        first = launcher.agent_pid
        hello = wire.hello({}, owner(2, "r2"), bound=False)
        # The service is still there, as when it hands over.
        found = await find_agent(home, hello)
        assert found is None
        with pytest.raises(LauncherDown):
            await launcher.wait_down()
    async with opened(home, owner=owner(3, "r2"), durable=True) as launcher:
        second = launcher.agent_pid
        assert second != first
        await launcher.launch(order(home, "sleep", lasting)).started()
    async with opened(home, owner=owner(4, "r3"), durable=True) as launcher:
        assert launcher.agent_pid == second  # not while it runs something
        assert adopted(launcher, named(home)).receipt is None


async def test_an_agent_that_cannot_be_started_is_tried_again(
    durable_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = durable_home
    monkeypatch.setattr(successors, "PAUSES", (0.01, 0.01, 0.01))
    real = agent_process._start_process
    failures = [OSError(errno.EAGAIN, "no more processes")] * 3

    def start(*args: Any) -> subprocess.Popen[bytes]:
        if failures:
            raise failures.pop()
        return real(*args)

    async with opened(home, durable=True) as launcher:
        lost = launcher.launch(order(home, "sleep", "60", job="lost"))
        await lost.started()
        monkeypatch.setattr(agent_process, "_start_process", start)
        os.kill(launcher.agent_pid, signal.SIGKILL)
        assert (await lost.exited()).ending == "lost"
        next_one = launcher.launch(order(home, "true", job="next"))
        assert (await next_one.exited()).exit_code == 0
        assert not failures


async def test_leaving_does_not_wait_for_an_agent_that_cannot_be_started(
    durable_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = durable_home

    def start(*_: Any) -> subprocess.Popen[bytes]:
        raise OSError(errno.EAGAIN, "no more processes")

    with trio.fail_after(30):
        async with opened(home) as launcher:
            lost = launcher.launch(order(home, "sleep", "60", job="lost"))
            await lost.started()
            monkeypatch.setattr(agent_process, "_start_process", start)
            monkeypatch.setattr(successors, "PAUSES", (3600.0,))
            os.kill(launcher.agent_pid, signal.SIGKILL)
            assert (await lost.exited()).ending == "lost"
            waits = launcher.launch(order(home, "true", job="waits"))
    assert waits.receipt is not None
    assert (waits.receipt.ending, waits.receipt.started_at) == ("stop", None)


async def test_a_service_is_let_in_when_jobs_have_taken_every_descriptor(
    durable_home: Path, lasting: str
) -> None:
    home = durable_home
    async with opened(home, durable=True) as launcher:
        await launcher.launch(order(home, "sleep", lasting)).started()
        pid = launcher.agent_pid
    # What the service held is taken as well, as by a job.
    taken = {int(fd.name) for fd in Path(f"/proc/{pid}/fd").iterdir()}
    free = next(number for number in range(1000) if number not in taken)
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, limits[1]))
    async with opened(home, durable=True) as launcher:
        assert launcher.agent_pid == pid
        assert adopted(launcher, named(home)).receipt is None
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        launcher.end_all()
    assert not survivors(lasting)


@contextmanager
def looked_at(lock: Path) -> Iterator[IO[str]]:
    """Somebody looks whether an agent lives, and takes his time."""
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield file


async def test_who_only_looks_at_the_lock_keeps_no_agent_from_starting(
    durable_home: Path,
) -> None:
    home = durable_home
    with looked_at(home / "agent.lock") as file:
        waiting = rf"-> FLOCK .*:{os.fstat(file.fileno()).st_ino} "

        async def let_go() -> None:
            while not re.search(waiting, Path("/proc/locks").read_text()):
                await trio.lowlevel.checkpoint()
            fcntl.flock(file, fcntl.LOCK_UN)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(let_go)
            async with opened(home) as launcher:
                assert (await launcher.launch(order(home)).exited()).ending == "spawn"
