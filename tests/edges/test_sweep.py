"""Ending what a dead agent left: all that belongs to an attempt, and nobody else."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import trio
from msgspec.structs import replace

from forge_actors.domain.launch import ProcessIdentity
from forge_actors.edges.node import sweep as sweep_module
from forge_actors.edges.node.agent import tree
from forge_actors.edges.node.sweep import still_alive, sweep
from tests.edges.node_jobs import survivors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(not tree.HAS_PROC, reason="needs /proc")

#: Of this run alone: a sweep ends what carries the mark, whoever started it.
KEY = (f"job-of-a-dead-agent-{os.getpid()}", 1)
MARK = {"FORGE_JOB_ID": KEY[0], "FORGE_ATTEMPT": str(KEY[1])}


#: Tells the pid of each process, of which there is only one at a time.
HOPPING = """
import os, time
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(0.002)
"""


class Starter:
    """Starts processes as an agent would, and ends what a test left of them."""

    def __init__(self, lasting: str) -> None:
        #: Shell commands that tell their pid and sleep, the other without environment.
        self.sleep = f"bash -c 'echo $$; exec sleep {lasting}'"
        self.unmarked = f"env -i {self.sleep}"
        self._lasting = lasting
        self._started: list[subprocess.Popen[bytes]] = []

    def __call__(
        self, script: str, count: int = 1, *, marked: bool = False
    ) -> list[ProcessIdentity]:
        """Run a shell script: the processes that tell their pid, behind the leader."""
        process = subprocess.Popen(
            ["bash", "-c", script],
            env={"PATH": os.environ["PATH"], **(MARK if marked else {})},
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._started.append(process)
        leader = identity(process.pid)
        assert process.stdout is not None
        told = [int(process.stdout.readline()) for _ in range(count)]
        return [leader, *map(identity, told)]

    def reap(self) -> None:
        """Wait for the leaders, which end by themselves."""
        for process in self._started:
            process.wait()

    def close(self) -> None:
        for line in survivors(self._lasting):
            os.kill(int(line.split()[0]), signal.SIGKILL)
        for process in self._started:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def identity(pid: int) -> ProcessIdentity:
    return ProcessIdentity(
        tree.boot_id(), pid, tree.start_ticks(pid), tree.pid_namespace()
    )


@pytest.fixture
def start(lasting: str) -> Iterator[Starter]:
    starter = Starter(lasting)
    yield starter
    starter.close()


async def test_what_carries_the_mark_is_ended_without_any_identity(
    start: Starter, lasting: str
) -> None:
    start(f"setsid {start.sleep} & wait", marked=True)
    assert await sweep({KEY: None}) == {KEY: ()}
    assert not survivors(lasting)


async def test_a_leader_that_cleared_its_environment_is_ended_with_its_session(
    start: Starter, lasting: str
) -> None:
    leader, _, _ = start(f"({start.sleep} &); {start.sleep}; true", 2)
    assert await sweep({KEY: leader}) == {KEY: ()}
    assert not survivors(lasting)


async def test_what_left_the_session_is_found_below_what_did_not(
    start: Starter, lasting: str
) -> None:
    leader, _ = start(f"setsid {start.unmarked} & wait")
    assert await sweep({KEY: leader}) == {KEY: ()}
    assert not survivors(lasting)


async def test_one_with_the_mark_proves_whose_session_it_is_in(
    start: Starter, lasting: str
) -> None:
    """The leader and the parents are gone, one daemon has no environment."""
    leader, *_ = start(f"({start.unmarked} & {start.sleep} &)", 2, marked=True)
    start.reap()
    assert await sweep({KEY: leader}) == {KEY: ()}
    assert not survivors(lasting)


async def test_a_marked_leader_proves_its_session_where_no_start_was_told(
    start: Starter, lasting: str
) -> None:
    start(f"({start.unmarked} &); {start.sleep}; true", 2, marked=True)
    assert await sweep({KEY: None}) == {KEY: ()}
    assert not survivors(lasting)


async def test_a_session_that_nothing_proves_is_named_and_not_touched(
    start: Starter,
) -> None:
    """Its number may have been given out again: this could be a stranger's."""
    leader, orphan = start(f"({start.sleep} &)")
    start.reap()
    assert await sweep({KEY: leader}) == {KEY: (orphan,)}
    assert still_alive([leader, orphan]) == (orphan,)


async def test_who_is_older_than_the_leader_is_a_stranger(start: Starter) -> None:
    leader, orphan = start(f"({start.sleep} &)")
    start.reap()
    recorded = replace(leader, start_ticks=orphan.start_ticks + 1)
    assert await sweep({KEY: recorded}) == {KEY: ()}
    assert still_alive([orphan]) == (orphan,)


@pytest.mark.parametrize("changes", [{"start_ticks": 1}, {"boot_id": "another"}])
async def test_a_process_that_only_shares_a_number_gets_no_signal(
    start: Starter, changes: dict[str, Any]
) -> None:
    strangers = start(f"{start.sleep} & wait")
    recorded = replace(strangers[0], **changes)
    assert await sweep({KEY: recorded}) == {KEY: ()}
    assert still_alive([recorded]) == ()
    assert still_alive(strangers) == tuple(strangers)


@pytest.mark.parametrize("first", [True, False])
async def test_a_number_of_another_namespace_is_proven_gone_only_from_the_first(
    start: Starter, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    namespace = tree.pid_namespace() if first else 1
    monkeypatch.setattr(tree, "FIRST_NAMESPACE", namespace)
    strangers = start(f"{start.sleep} & wait")
    recorded = replace(strangers[0], namespace=2)
    left = () if first else (recorded,)
    assert await sweep({KEY: recorded}) == {KEY: left}
    assert still_alive([recorded]) == left
    assert still_alive(strangers) == tuple(strangers)


async def test_each_attempt_is_told_apart(start: Starter) -> None:
    strangers = start(f"{start.sleep} & wait")
    own = start(f"{start.sleep} & wait", marked=True)
    gone = ProcessIdentity("another", 1, 1)
    found = await sweep({KEY: None, ("next", 2): gone, ("third", 3): None})
    assert found == {KEY: (), ("next", 2): (), ("third", 3): ()}
    assert still_alive(own + strangers) == tuple(strangers)


async def test_the_one_who_sweeps_is_spared_and_what_it_started() -> None:
    """A service that a job started with its own command line descends from the job."""
    program = (
        "import os, trio\n"
        "from forge_actors.edges.node.sweep import sweep\n"
        "child = os.posix_spawnp('sleep', ['sleep', '60'], {'PATH': os.defpath})\n"
        f"print(trio.run(sweep, {{{KEY!r}: None}}), os.waitpid(child, os.WNOHANG))\n"
        "os.kill(child, 9)\n"
    )
    # The shell has the mark, and the program has it from the shell.
    done = await trio.run_process(
        ["bash", "-c", '"$0" -c "$1" & wait', sys.executable, program],
        env={**os.environ, **MARK},
        capture_stdout=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.decode() == f"{ {KEY: ()} } (0, 0)\n"


async def test_what_may_not_be_ended_is_named_and_not_waited_for(
    start: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, spared = start(f"exec {start.sleep}", marked=True)
    _, other = start(f"exec {start.sleep}", marked=True)
    real = tree.send

    def send(process: tree.Process, number: int) -> bool:
        if process.pid == spared.pid:
            raise PermissionError
        return real(process, number)

    monkeypatch.setattr(tree, "send", send)
    began = trio.current_time()
    assert await sweep({KEY: None}) == {KEY: (spared,)}
    assert trio.current_time() - began < sweep_module.SWEEP_LIMIT / 2
    assert still_alive([spared, other]) == (spared,)


async def test_what_does_not_go_is_waited_for_up_to_a_limit(
    start: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that the kernel holds: the signal is taken, and nothing happens."""
    leader, _ = start(f"exec {start.sleep}", marked=True)
    monkeypatch.setattr(tree, "send", lambda _process, _number: True)
    monkeypatch.setattr(sweep_module, "SWEEP_LIMIT", 0.3)
    assert await sweep({KEY: leader}) == {KEY: (leader,)}


async def test_a_defunct_process_is_not_alive(start: Starter) -> None:
    leader, _ = start(f"exec {start.sleep}", marked=True)
    os.kill(leader.pid, signal.SIGKILL)
    # Nobody collects it meanwhile.
    os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222
    assert still_alive([leader]) == ()
    assert await sweep({KEY: leader}) == {KEY: ()}


async def test_what_forks_all_the_time_is_ended(start: Starter, lasting: str) -> None:
    """Each of them leaves its session, lets its parent end and starts the next."""
    leader, *_ = start(
        f"exec {sys.executable} -c '{HOPPING}' {lasting}", 10, marked=True
    )
    assert await sweep({KEY: leader}) == {KEY: ()}
    assert not survivors(lasting)


@pytest.mark.parametrize(("restless", "looks"), [(False, 2), (True, 8)])
async def test_a_machine_that_starts_processes_all_the_time_is_looked_at_more_often(
    monkeypatch: pytest.MonkeyPatch, restless: bool, looks: int
) -> None:
    pids = itertools.count()
    monkeypatch.setattr(tree, "last_pid", lambda: next(pids) if restless else 1)
    made = []

    class Counted(tree.Snapshot):
        def __init__(self, seen: Callable[[tree.Process], object]) -> None:
            super().__init__(seen)
            made.append(self)

    monkeypatch.setattr(sweep_module, "Snapshot", Counted)
    assert await sweep({KEY: None}) == {KEY: ()}
    assert len(made) == looks


async def test_one_that_lasts_is_named_and_not_touched_while_its_leader_lives(
    start: Starter, lasting: str
) -> None:
    leader, child = start(f"setsid {start.sleep} & wait", marked=True)
    # Where no start was told, anybody may be the leader.
    for known in (leader, None):
        found = (await sweep({KEY: known}, {}, {KEY}))[KEY]
        assert {leader, child} <= set(found)
        assert still_alive([leader, child]) == (leader, child)
    os.kill(leader.pid, signal.SIGKILL)
    start.reap()
    assert await sweep({KEY: leader}, {}, {KEY}) == {KEY: ()}
    assert not survivors(lasting)
