"""Logs that could not take everything: exact where kept, told where not, no stall."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
import trio.testing

from forge_actors.edges.node import agent_process, logs
from forge_actors.edges.node.agent.output import Stream
from tests.edges.node_jobs import (
    DOUBLE_FORK,
    ROOT,
    named,
    opened,
    order,
    run,
    shell,
    text,
)
from tests.small_disk import needs_root, small_disk


def fifo(path: Path) -> int:
    """Both ends of a new one, for what a job and a test say to each other."""
    os.mkfifo(path)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


@needs_root
@pytest.mark.parametrize("limit", [16 << 20, 150_000])
async def test_a_full_disk_ends_the_log_and_not_the_job(home: Path, limit: int) -> None:
    """In the first half of the log, and in the ring behind it."""
    disk = home / "disk"
    log = str(disk / "job")
    script = "seq -w 40000; echo warned >&2; exit 3"
    wanted = shell(home, script, log=log, output_limit=limit)
    whole = b"".join(b"%05d\n" % number for number in range(1, 40_001))
    with small_disk(disk, 100):
        (receipt,) = await run(home, wanted)
        assert (receipt.ending, receipt.exit_code) == ("exit", 3)
        assert receipt.stdout_bytes == len(whole)
        assert receipt.error is not None
        assert "is incomplete: No space left on device" in receipt.error
        kept = logs.size(log, "stdout")
        assert 0 < kept == len(whole) - receipt.stdout_lost
        data, offset = b"", 0
        while offset < kept:
            chunk = logs.read(log, "stdout", offset, 1 << 20)
            assert chunk.data == whole[chunk.offset : chunk.next_offset]
            data += chunk.data
            offset = chunk.next_offset
        assert len(data) > 50_000


@needs_root
async def test_a_follower_waits_for_no_bytes_that_are_lost(home: Path) -> None:
    """It would be woken for each of them, and find nothing to read."""
    disk = home / "disk"
    script = (
        "head -c 200000 /dev/zero; echo > full; read -r _ < go;"
        "echo more; echo > full; read -r _ < go"
    )
    wanted = shell(home, script, log=str(disk / "job"))
    full, go = fifo(home / "full"), fifo(home / "go")
    with small_disk(disk, 100):
        async with opened(home) as launcher:
            attempt = launcher.launch(wanted)
            await trio.lowlevel.wait_readable(full)
            assert os.read(full, 1) == b"\n"
            # It went through the pipe, and a turn of the agent later into the log.
            await launcher.launch(order(home, "true", job="turn")).exited()
            woken = trio.Event()

            async def follow() -> None:
                known = logs.size(wanted.log, "stdout")
                assert known > 0
                await launcher.wait_output(named(home), 1, known)
                woken.set()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(follow)
                await trio.testing.wait_all_tasks_blocked()
                os.write(go, b"\n")
                await trio.lowlevel.wait_readable(full)
                await launcher.launch(order(home, "true", job="next")).exited()
                assert not woken.is_set()
                os.write(go, b"\n")
            assert (await attempt.exited()).stdout_lost > 0
    for fd in (full, go):
        os.close(fd)


def test_what_is_kept_is_told_as_a_reader_finds_it(home: Path) -> None:
    stream = Stream(-1, os.fsencode(home / "log.stdout"), 20, keep_tail=False)
    log = str(home / "log")
    stream.take(b"0123456789abc")
    assert stream.kept == logs.size(log, "stdout") == 13
    os.dup2(os.open("/dev/full", os.O_WRONLY), stream._ring)
    stream.take(b"defg")
    stream.take(b"hijk")
    assert (stream.total, stream.kept) == (21, 13)
    assert logs.size(log, "stdout") == 13
    assert logs.read(log, "stdout", 0, 99).data == b"0123456789"
    assert logs.read(log, "stdout", 10, 99).data == b"abc"
    stream.close()


async def test_a_job_that_closes_its_streams_at_once_goes_on(home: Path) -> None:
    wanted = shell(home, "exec <&- >&- 2>&-; sleep 0.3; exit 4")
    async with opened(home) as launcher:
        attempt = launcher.launch(wanted)
        await launcher.wait_output(named(home), 1, 0)
        receipt = await attempt.exited()
    assert (receipt.ending, receipt.exit_code) == ("exit", 4)
    assert not receipt.output_held


#: An agent that gives what a job leaves behind all the time of a test.
PATIENT = f"""
import sys
sys.path.append({str(ROOT)!r})
from forge_actors.edges.node.agent import __main__, jobs
jobs.LINGER = 1000.0
sys.exit(__main__.main())
"""


async def test_streams_in_the_hands_of_a_stranger_hold_nothing_up(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that is not the job's own got them, and keeps them open."""
    program = home / "patient.py"
    program.write_text(PATIENT)
    monkeypatch.setattr(agent_process, "_PROGRAM", str(program))
    told, go = fifo(home / "told"), fifo(home / "go")
    wanted = shell(home, "echo out; echo $$ > told; read -r _ < go; exit 4")
    async with opened(home) as launcher:
        attempt = launcher.launch(wanted)
        await launcher.wait_output(named(home), 1, 0)
        await trio.lowlevel.wait_readable(told)
        pid = int(os.read(told, 100))
        # Not its stdout: the shell may still have that open as the fifo.
        held = os.open(f"/proc/{pid}/fd/2", os.O_WRONLY)
        os.write(go, b"\n")
        receipt = await attempt.exited()
        for fd in (told, go, held):
            os.close(fd)
    assert (receipt.exit_code, receipt.output_held) == (4, True)
    assert text(wanted) == "out\n"


async def test_a_daemon_with_the_streams_ends_with_the_job(home: Path) -> None:
    wanted = order(home, "python3", "-c", DOUBLE_FORK, "4711.25")
    (receipt,) = await run(home, wanted)
    assert receipt.exit_code == 0
    assert [line.split()[1] for line in receipt.leftovers] == ["sleep"]
