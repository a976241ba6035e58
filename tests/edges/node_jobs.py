"""What the tests of the node agent share: orders, and a look for survivors."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

import forge_actors
from forge_actors.domain.launch import LaunchOrder, ProcessIdentity, Receipt
from forge_actors.domain.ownership import Owner
from forge_actors.edges.node import agent_lock, logs
from forge_actors.edges.node.agent import tree
from forge_actors.edges.node.finding import read_card
from forge_actors.edges.node.journals import read_journal
from forge_actors.edges.node.launcher import NodeLauncher, open_launcher
from tests.processes import command_lines

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from forge_actors.edges.node.attempt import Attempt

ROOT = Path(forge_actors.__file__).parents[1]
_numbers = itertools.count()


def lasting_time() -> str:
    """A sleeping time nobody else uses, so that a survivor can be told by it."""
    return f"{4711 + next(_numbers)}.{os.getpid():07d}37"


def survivors(lasting: str) -> list[str]:
    """The command lines of living processes that contain the sleeping time."""
    found = []
    for pid, words in command_lines():
        line = words.replace(b"\0", b" ").decode(errors="replace")
        if lasting in line and pid != os.getpid():
            found.append(f"{pid} {line}")
    return found


def named(home: Path, job: str = "job") -> str:
    """A job id that no other home has.

    What a killed agent leaves is found by its job's id on the whole machine, so that
    equal ids would let two tests that run at the same time end each other's processes.
    """
    return f"{job}-{home.stat().st_ino}"


def order(home: Path, *argv: str, job: str = "job", **changes: Any) -> LaunchOrder:
    """An order for the job that is `named` so; its log has the bare name."""
    attempt = changes.pop("attempt", 1)
    marks = {"FORGE_JOB_ID": named(home, job), "FORGE_ATTEMPT": str(attempt)}
    values: dict[str, Any] = {
        "job": named(home, job),
        "repo": "repo",
        "attempt": attempt,
        "fence": 7,
        "argv": argv,
        "cwd": str(home),
        "env": {"PATH": os.environ["PATH"]} | changes.pop("env", {}) | marks,
        "stdin": None,
        "log": str(home / job),
        "output_limit": 16 << 20,
        "wall": None,
        "idle": None,
        "stop_signal": "SIGTERM",
        "grace": 10.0,
        "keep_leftovers": False,
    }
    return LaunchOrder(**(values | changes))


def shell(home: Path, script: str, **changes: Any) -> LaunchOrder:
    return order(home, "bash", "-c", script, **changes)


@contextlib.asynccontextmanager
async def opened(home: Path, **how: Any) -> AsyncGenerator[NodeLauncher, None]:
    async with open_launcher(home, **how) as launcher:
        yield launcher
        log = (home / "agent.log").read_text()
        assert log == ""


def owner(epoch: int, release: str = "r1") -> Owner:
    process = ProcessIdentity("boot", os.getpid(), 1)
    return Owner(epoch, f"instance-{epoch}", process, release, 0.0)


def read_receipts(path: Path) -> list[Receipt]:
    """Those that one agent wrote down."""
    entries = read_journal(path).entries.values()
    return [entry for entry in entries if isinstance(entry, Receipt)]


def adopted(launcher: NodeLauncher, job: str, attempt: int = 1) -> Attempt:
    """The attempt that an earlier launcher began."""
    found = launcher.adopt(job, attempt)
    assert found is not None
    return found


def end_agent(home: Path) -> None:
    """End the agent of a home, if one lives, and wait for that."""
    card = read_card(home)
    process = None if card is None else card.process()
    if process is not None and agent_lock.living_instance(home) is not None:
        tree.send(process, signal.SIGCONT)
        tree.send(process, signal.SIGTERM)
    trio.run(agent_lock.wait_for_end, home)


async def run(home: Path, *orders: LaunchOrder) -> list[Receipt]:
    async with opened(home) as launcher:
        attempts = [launcher.launch(each) for each in orders]
        return [await attempt.exited() for attempt in attempts]


async def stop_when_ready(
    launcher: NodeLauncher, wanted: LaunchOrder, **how: Any
) -> Receipt:
    """Stop an attempt after its first output."""
    attempt = launcher.launch(wanted)
    await launcher.wait_output(wanted.job, wanted.attempt, 0)
    attempt.stop(**how)
    return await attempt.exited()


def text(wanted: LaunchOrder, stream: logs.Stream = "stdout") -> str:
    chunk = logs.read(wanted.log, stream, 0, 1 << 20)
    return chunk.data.decode()


#: Leaves a daemon that sleeps, with `-i` one without an environment, and ends when that
#: has begun: until then it looks like the program that started it.
DOUBLE_FORK = """
import os, sys
environ = {} if sys.argv[2:] == ["-i"] else dict(os.environ)
reading, writing = os.pipe()  # closed by exec, and so the sign that it happened
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvpe("sleep", ["sleep", sys.argv[1]], environ)
    os._exit(0)
os.wait()
os.close(writing)
os.read(reading, 1)
os.write(1, b"forked")
"""

#: A part of a script: what it has just begun in the background is a sleeper by then.
ASLEEP = 'until read -r name < /proc/$!/comm && [ "$name" = sleep ]; do :; done'
