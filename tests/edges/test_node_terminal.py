"""A job with a terminal: what it sees there, and what is kept of what it prints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.edges.node_jobs import (
    lasting_time,
    opened,
    order,
    run,
    shell,
    stop_when_ready,
    survivors,
    text,
)


async def test_all_three_streams_are_the_terminal_of_its_own_session(
    home: Path,
) -> None:
    script = (
        "tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo all;"
        "echo to-stderr >&2; echo to-tty > /dev/tty; echo $TERM;"
        "ps -o sid=,tpgid= -p $$"
    )
    wanted = shell(home, script, pty=True)
    async with opened(home) as launcher:
        attempt = launcher.launch(wanted)
        identity = await attempt.started()
        receipt = await attempt.exited()
    assert identity is not None
    name, *lines, ids = text(wanted).splitlines()
    assert name.startswith("/dev/pts/")
    assert lines == ["24 80", "all", "to-stderr", "to-tty", "xterm-256color"]
    assert ids.split() == [str(identity.pid)] * 2
    assert (receipt.exit_code, receipt.stderr_bytes) == (0, 0)
    assert receipt.stdout_bytes == len(text(wanted))
    assert not (home / "job.stderr").exists()


async def test_a_terminal_that_is_named_keeps_its_name(home: Path) -> None:
    wanted = shell(home, "echo $TERM", pty=True, env={"TERM": "dumb"})
    await run(home, wanted)
    assert text(wanted) == "dumb\n"


async def test_a_program_that_buffers_only_for_pipes_is_heard_at_once(
    home: Path,
) -> None:
    """L-08: what it printed is there although it is killed."""
    program = "import time; print('hi'); time.sleep(600)"
    wanted = order(home, sys.executable, "-c", program, pty=True)
    async with opened(home) as launcher:
        receipt = await stop_when_ready(launcher, wanted)
    assert receipt.ending == "stop"
    assert text(wanted) == "hi\n"


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("import sys; print(repr(sys.stdin.read()), repr(sys.stdin.read()))", "'' ''"),
        ("import os\nfor _ in range(300): assert os.read(0, 9) == b''\nprint(1)", "1"),
        ("input('name? ')", "EOFError"),
        ("import getpass; getpass.getpass()", "EOFError"),
        ("import select; print(select.select([0], [], [])[0])", "[0]"),
        ("import readline; input('name? ')", "EOFError"),
        ("import tty, os; tty.setraw(0); print(os.read(0, 1))", "b'\\x04'"),
    ],
)
async def test_whoever_reads_from_it_finds_the_end(
    home: Path, program: str, says: str
) -> None:
    """L-08: nobody types there, so no way of reading may wait for it."""
    wanted = order(home, sys.executable, "-c", program, pty=True, wall=20.0)
    (receipt,) = await run(home, wanted)
    assert receipt.ending == "exit", text(wanted)
    assert says in text(wanted)


async def test_an_interactive_shell_ends_by_itself(home: Path) -> None:
    wanted = order(home, "bash", "--norc", "-i", pty=True, wall=20.0)
    (receipt,) = await run(home, wanted)
    assert (receipt.ending, receipt.exit_code) == ("exit", 0), text(wanted)


async def test_bytes_are_kept_as_they_were_written(home: Path) -> None:
    """The terminal turns no newline into two characters, and echoes nothing."""
    wanted = shell(home, r"printf 'a\xff\x00\x1b[31mb\r\n\n\t.'", pty=True)
    await run(home, wanted)
    assert (home / "job.stdout").read_bytes() == b"a\xff\x00\x1b[31mb\r\n\n\t."


async def test_nothing_of_much_output_before_the_end_is_lost(home: Path) -> None:
    wanted = shell(home, "yes | head -c 3000000; echo END; exit 3", pty=True)
    (receipt,) = await run(home, wanted)
    assert (receipt.exit_code, receipt.stdout_bytes) == (3, 3_000_004)
    assert (home / "job.stdout").read_bytes() == b"y\n" * 1_500_000 + b"END\n"


async def test_what_is_printed_there_tells_of_a_failure(home: Path) -> None:
    wanted = shell(home, "echo it broke >&2; exit 1", pty=True)
    (receipt,) = await run(home, wanted)
    assert receipt.stderr_tail == "it broke\n"


async def test_its_tree_is_stopped_like_any_other(home: Path) -> None:
    lasting = lasting_time()
    script = f"setsid sleep {lasting} & nohup sleep {lasting} & echo; wait"
    async with opened(home) as launcher:
        receipt = await stop_when_ready(launcher, shell(home, script, pty=True))
    assert (receipt.ending, receipt.signal) == ("stop", "SIGTERM")
    assert not survivors(lasting)


async def test_a_job_that_closes_its_terminal_goes_on(home: Path) -> None:
    script = "echo bye; exec <&- >&- 2>&-; sleep 0.3; exit 4"
    wanted = shell(home, script, pty=True)
    (receipt,) = await run(home, wanted)
    assert (receipt.ending, receipt.exit_code) == ("exit", 4)
    assert text(wanted) == "bye\n"


async def test_a_terminal_leaves_no_descriptor_open_in_the_agent(home: Path) -> None:
    async with opened(home) as launcher:
        held = Path(f"/proc/{launcher.agent_pid}/fd")
        before = len(list(held.iterdir()))
        for number, argv in enumerate([["echo"], ["/no/program"], ["sleep", "600"]]):
            wanted = order(home, *argv, job=f"{number}", pty=True, wall=0.3)
            await launcher.launch(wanted).exited()
        assert len(list(held.iterdir())) == before


async def test_a_job_with_a_terminal_that_cannot_start_says_why(home: Path) -> None:
    (receipt,) = await run(home, order(home, "/no/program", pty=True))
    assert receipt.ending == "spawn"
    assert receipt.error == "there is no program /no/program"
