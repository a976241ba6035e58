"""Limits of a job's processes: set before its program runs, and only for that job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forge_actors.domain.launch import ProcessLimits
from tests.edges.node_jobs import ROOT, order, run, shell, text

MIB = 1 << 20


async def test_a_job_steps_back_behind_others(home: Path) -> None:
    wanted = shell(home, "nice", limits=ProcessLimits(nice=7))
    other = shell(home, "nice", job="other")
    await run(home, wanted, other)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert text(wanted) == f"{min(19, own + 7)}\n"
    assert text(other) == f"{own}\n"


async def test_what_a_process_may_allocate_is_bounded(home: Path) -> None:
    program = (
        "import sys\nkept = bytearray(int(sys.argv[1]) << 20)\nprint(len(kept) >> 20)\n"
    )
    limits = ProcessLimits(memory=256 * MIB)
    little = order(home, sys.executable, "-c", program, "64", job="l", limits=limits)
    much = order(home, sys.executable, "-c", program, "512", job="m", limits=limits)
    free = order(home, sys.executable, "-c", program, "512", job="f")
    receipts = await run(home, little, much, free)
    assert [receipt.exit_code for receipt in receipts] == [0, 1, 0]
    assert "MemoryError" in receipts[1].stderr_tail


async def test_memory_that_is_only_reserved_does_not_count(home: Path) -> None:
    """The runtimes of Go, Java and JavaScript reserve many times what they use."""
    program = (
        "import mmap\n"
        "flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS\n"
        "mmap.mmap(-1, 4 << 30, flags=flags, prot=mmap.PROT_READ)\n"
    )
    limits = ProcessLimits(memory=256 * MIB)
    (receipt,) = await run(
        home, order(home, sys.executable, "-c", program, limits=limits)
    )
    assert receipt.exit_code == 0, receipt.stderr_tail


async def test_a_limit_above_the_systems_own_is_the_systems_own(home: Path) -> None:
    """What is not allowed to be raised is no reason not to start."""
    wanted = shell(
        home,
        "ulimit -d",
        limits=ProcessLimits(memory=1 << 45),
    )
    (receipt,) = await run(home, wanted)
    assert receipt.exit_code == 0
    assert text(wanted) in ("unlimited\n", f"{(1 << 45) >> 10}\n")


async def test_limits_and_a_terminal_go_together(home: Path) -> None:
    limits = ProcessLimits(nice=3, memory=256 * MIB)
    wanted = shell(home, "tty -s && nice && ulimit -d", pty=True, limits=limits)
    await run(home, wanted)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert text(wanted) == f"{min(19, own + 3)}\n{256 << 10}\n"


async def test_a_program_that_is_missing_is_named_also_with_limits(home: Path) -> None:
    limits = ProcessLimits(nice=1)
    (receipt,) = await run(home, order(home, "/no/program", limits=limits))
    assert receipt.error == "there is no program /no/program"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_a_job_cannot_start_more_processes_than_it_may(tmp_path: Path) -> None:
    """As another user: the system counts no processes of root."""
    program = (
        f"import os, signal, sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from forge_actors.edges.node.agent.limits import Limits, Preparation\n"
        "os.setuid(54321)\n"
        "Preparation(Limits(0, None, 5))()\n"
        "children = []\n"
        "try:\n"
        "    for _ in range(50):\n"
        "        pid = os.fork()\n"
        "        if pid == 0: signal.pause()\n"
        "        children.append(pid)\n"
        "except BlockingIOError: print(len(children))\n"
        "for pid in children: os.kill(pid, 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("5\n", "")
