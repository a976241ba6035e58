"""Descriptors that a job begins with: locks that live exactly as long as it runs."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import socket
from array import array
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.launch import AfterJob, ProcessLimits
from forge_actors.edges.node import wire
from forge_actors.edges.node.agent.handed import FIRST, Handed, reserved
from forge_actors.edges.node.descriptors import OpenDescriptors, handing_line
from forge_actors.edges.node.launcher import open_launcher
from tests.edges.node_jobs import opened, order, shell, survivors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.launch import ProcessIdentity


def locked(home: Path, *names: str) -> OpenDescriptors:
    """Open these files, and lock each."""
    numbers = []
    for name in names:
        fd = os.open(home / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        numbers.append(fd)
    return OpenDescriptors(numbers)


def is_free(home: Path, *names: str) -> bool:
    fds = [os.open(home / name, os.O_RDWR) for name in names]
    try:
        for fd in fds:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        for fd in fds:
            os.close(fd)
    return True


def descriptors(pid: int) -> dict[int, str]:
    """Those that a process has, and the names of the files."""
    folder = Path(f"/proc/{pid}/fd")
    return {
        int(each.name): os.path.basename(each.readlink()) for each in folder.iterdir()
    }


def pid_of(identity: ProcessIdentity | None) -> int:
    assert identity is not None
    return identity.pid


@pytest.mark.parametrize(
    "changes",
    [{}, {"pty": True}, {"limits": ProcessLimits(nice=1)}],
    ids=["plain", "terminal", "limits"],
)
async def test_the_process_has_them_from_3_on_and_nobody_else_has(
    home: Path, lasting: str, changes: dict[str, object]
) -> None:
    async with opened(home) as launcher:
        given = locked(home, "a", "b")
        sleep = ("sleep", lasting)
        before = launcher.launch(order(home, *sleep, job="before"))
        attempt = launcher.launch(order(home, *sleep, job="it", **changes), given)
        after = launcher.launch(order(home, *sleep, job="after", **changes))
        pid = pid_of(await attempt.started())
        assert given.numbers == (), "it has them, so ours are closed"
        found = descriptors(pid)
        assert sorted(found) == [0, 1, 2, 3, 4]
        assert (found[3], found[4]) == ("a", "b")
        for other in (before, after):
            assert sorted(descriptors(pid_of(await other.started()))) == [0, 1, 2]
        kept = descriptors(launcher.agent_pid).values()
        assert not {"a", "b"} & set(kept)
        assert not is_free(home, "a")
        attempt.stop()
        await attempt.exited()
        assert is_free(home, "a", "b")
    assert not survivors(lasting)


async def test_nobody_has_them_when_it_cannot_begin(home: Path, lasting: str) -> None:
    async with opened(home) as launcher:
        given = locked(home, "a")
        attempt = launcher.launch(order(home, "/no/such/program"), given)
        assert await attempt.started() is None
        assert (await attempt.exited()).ending == "spawn"
        assert is_free(home, "a")
        # An order is not repeated with other ones, which nobody keeps either.
        launcher.forget(*attempt.key)
        first = launcher.launch(order(home, "sleep", lasting, job="twice"))
        identity = await first.started()
        launcher.send(wire.Ping())
        line = wire.start_line(order(home, "sleep", lasting, job="twice"))
        again = locked(home, "a")
        launcher._outbox.hand(handing_line(line, again))
        other = launcher.launch(order(home, "true", job="other"))
        await other.exited()  # the agent has heard what came before
        again.close()
        assert is_free(home, "a")
        assert await first.started() == identity


async def test_what_a_dead_agent_did_not_begin_the_next_one_begins_with_them(
    home: Path, lasting: str
) -> None:
    async with open_launcher(home) as launcher:
        agent = launcher.agent_pid
        os.kill(agent, signal.SIGSTOP)
        given = locked(home, "a", "b")
        # More than the socket has room for is before it, and something behind it.
        filler = "x" * 100_000
        others = [
            launcher.launch(order(home, "true", filler, job=f"filler-{number}"))
            for number in range(8)
        ]
        attempt = launcher.launch(order(home, "sleep", lasting), given)
        others.append(launcher.launch(order(home, "true", job="behind")))
        os.kill(agent, signal.SIGKILL)
        pid = pid_of(await attempt.started())
        assert launcher.agent_pid != agent
        assert sorted(descriptors(pid)) == [0, 1, 2, 3, 4]
        assert given.numbers == ()
        for other in others:
            assert (await other.exited()).ending in ("exit", "lost", "stop")
        attempt.stop()
        await attempt.exited()
        assert is_free(home, "a", "b")


async def test_they_come_with_their_line_through_a_full_socket(home: Path) -> None:
    async with opened(home) as launcher:
        agent = launcher.agent_pid
        os.kill(agent, signal.SIGSTOP)
        attempts = []
        for number in range(20):
            long = "x" * 90_000
            job = f"job-{number}"
            wanted = shell(home, f"readlink /proc/self/fd/3 # {long}", job=job)
            attempts.append(launcher.launch(wanted, locked(home, f"lock-{number}")))
            attempts.append(launcher.launch(order(home, "true", job=f"plain-{number}")))
        os.kill(agent, signal.SIGCONT)
        for attempt in attempts:
            assert (await attempt.exited()).exit_code == 0
        for number in range(20):
            said = (home / f"job-{number}.stdout").read_text()
            assert said == f"{home / f'lock-{number}'}\n"
            assert is_free(home, f"lock-{number}")


@contextmanager
def full(agent: int, room: int) -> Iterator[None]:
    """The agent can have so many descriptors more."""
    limits = resource.prlimit(agent, resource.RLIMIT_NOFILE)
    taken = {int(fd.name) for fd in Path(f"/proc/{agent}/fd").iterdir()}
    free = [number for number in range(256) if number not in taken]
    resource.prlimit(agent, resource.RLIMIT_NOFILE, (free[room], limits[1]))
    yield
    resource.prlimit(agent, resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize(("count", "room"), [(1, 0), (2, 1), (2, 2), (16, 5)])
async def test_an_agent_without_room_for_them_begins_nothing(
    home: Path, lasting: str, count: int, room: int
) -> None:
    names = [f"lock-{number}" for number in range(count)]
    async with opened(home) as launcher:
        runs = launcher.launch(order(home, "sleep", lasting, job="runs"))
        await runs.started()
        with full(launcher.agent_pid, room):
            without = launcher.launch(order(home, "true"), locked(home, *names))
            receipt = await without.exited()
        assert receipt.ending == "spawn"
        assert "too many files are open" in (receipt.error or "")
        assert is_free(home, *names)
        # What comes later has its own.
        later = shell(home, "readlink /proc/self/fd/3", job="later")
        assert (await launcher.launch(later, locked(home, "z")).exited()).exit_code == 0
        assert (home / "later.stdout").read_text() == f"{home / 'z'}\n"
        runs.stop()
        await runs.exited()


async def test_what_follows_a_job_has_none_of_them(home: Path) -> None:
    async with opened(home) as launcher:
        wanted = order(home, "true", after_job="ls /proc/self/fd > after")
        receipt = await launcher.launch(wanted, locked(home, "a", "b")).exited()
        assert receipt.after_job == AfterJob(exit_code=0)
        # The last one is the folder that is listed.
        assert (home / "after").read_text().split() == ["0", "1", "2", "3"]


def test_descriptors_that_were_lost_are_not_those_of_the_next_line(
    tmp_path: Path,
) -> None:
    mine = os.open(tmp_path / "a", os.O_RDWR | os.O_CREAT)
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [mine]).tobytes())
    reads = [([], socket.MSG_CTRUNC), ([], 0), ([rights], 0)]

    class Scripted:
        def recvmsg(
            self, *_: int
        ) -> tuple[bytes, list[tuple[int, int, bytes]], int, None]:
            ancillary, flags = reads.pop(0)
            return b"x", ancillary, flags, None

    handed = Handed(Scripted())  # type: ignore[arg-type]
    for _ in range(3):
        assert handed.receive(10) == b"x"
    assert handed.take(1) == []
    [copy] = handed.take(1)
    assert os.path.samestat(os.fstat(copy), os.stat(tmp_path / "a"))
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(mine)
    os.close(copy)


def test_no_descriptor_that_is_opened_meanwhile_has_a_number_of_the_job() -> None:
    with reserved(200):
        number = os.open(os.devnull, os.O_RDONLY)
        os.close(number)
    assert number >= FIRST + 200
