"""The node agent with real processes: what a job gets, and what is told of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from forge_actors.edges.node import logs
from forge_actors.edges.node.agent import tree
from forge_actors.edges.node.launcher import open_launcher
from tests.edges.node_jobs import (
    ROOT,
    named,
    opened,
    order,
    run,
    shell,
    survivors,
    text,
)

if TYPE_CHECKING:
    pass


# Plain ends.


async def test_a_receipt_tells_how_the_job_ended(home: Path) -> None:
    wanted = shell(home, "echo out; echo err >&2; exit 3")
    (receipt,) = await run(home, wanted)
    assert (receipt.ending, receipt.exit_code, receipt.signal) == ("exit", 3, None)
    assert (receipt.job, receipt.attempt, receipt.fence) == (named(home), 1, 7)
    assert (receipt.stdout_bytes, receipt.stderr_bytes) == (4, 4)
    assert receipt.stderr_tail == "err\n"
    assert receipt.max_rss_kib > 0
    assert receipt.started_at is not None
    assert receipt.started_at <= receipt.ended_at
    assert receipt.error is None
    assert not receipt.forced
    assert text(wanted) == "out\n"
    assert text(wanted, "stderr") == "err\n"
    assert os.stat(wanted.log + ".stdout").st_mode & 0o777 == 0o600


async def test_the_identity_is_the_one_the_system_knows(home: Path) -> None:
    async with opened(home) as launcher:
        attempt = launcher.launch(order(home, "sleep", "60"))
        identity = await attempt.started()
        assert identity is not None
        assert identity.start_ticks == tree.start_ticks(identity.pid)
        assert identity.boot_id
        attempt.stop()
        assert (await attempt.exited()).identity == identity


async def test_a_job_that_kills_itself_has_a_signal_and_no_exit_code(
    home: Path,
) -> None:
    (receipt,) = await run(home, shell(home, "kill -9 $$"))
    assert (receipt.ending, receipt.signal) == ("exit", "SIGKILL")
    assert receipt.exit_code is None
    assert not receipt.forced


async def test_a_job_without_output_makes_no_files(home: Path) -> None:
    await run(home, order(home, "true"))
    assert not list(home.glob("job.*"))


async def test_the_environment_is_exactly_the_one_given(home: Path) -> None:
    wanted = order(home, "env", "-0", env={"A": "1\n2", "B\udcff": "\udcfe"})
    await run(home, wanted)
    data = logs.read(wanted.log, "stdout", 0, 1 << 20).data
    path = os.fsencode(os.environ["PATH"])
    marks = [f"FORGE_JOB_ID={named(home)}".encode(), b"FORGE_ATTEMPT=1"]
    assert sorted(data.split(b"\0")) == sorted(
        [b"", b"A=1\n2", b"B\xff=\xfe", b"PATH=" + path, *marks]
    )


async def test_a_job_adds_to_what_every_job_has_and_replaces_it(home: Path) -> None:
    base = {"PATH": os.environ["PATH"], "BOTH": "base", "B\udcff": "\udcfe"}
    wanted = order(home, "env", "-0", env={"BOTH": "own", "OWN": "1"})
    wanted.env.pop("PATH", None)
    async with open_launcher(home, base) as launcher:
        first = launcher.launch(shell(home, "sleep 600", job="first"))
        await first.started()
        os.kill(launcher.agent_pid, signal.SIGKILL)
        assert (await first.exited()).ending == "lost"
        await launcher.launch(wanted).exited()  # the next agent is told as well
    data = logs.read(wanted.log, "stdout", 0, 1 << 20).data
    path = os.fsencode(os.environ["PATH"])
    marks = [f"FORGE_JOB_ID={named(home)}".encode(), b"FORGE_ATTEMPT=1"]
    own = [b"BOTH=own", b"OWN=1"]
    assert sorted(data.split(b"\0")) == sorted(
        [b"", b"B\xff=\xfe", b"PATH=" + path, *marks, *own]
    )


async def test_arguments_pass_byte_for_byte(home: Path) -> None:
    arguments = ["--", "-n", "", "a\nb", "é漢", os.fsdecode(bytes(range(1, 256)))]
    program = "import os,sys; os.write(1, b'|'.join(map(os.fsencode, sys.argv[1:])))"
    wanted = order(home, sys.executable, "-c", program, *arguments)
    await run(home, wanted)
    data = logs.read(wanted.log, "stdout", 0, 1 << 20).data
    assert data == b"|".join(os.fsencode(each) for each in arguments)


async def test_stdin_is_the_given_file_or_empty(home: Path) -> None:
    (home / "prompt").write_bytes(b"\xffhello")
    given = order(home, "cat", job="given", stdin=str(home / "prompt"))
    empty = order(home, "cat", job="empty")
    await run(home, given, empty)
    assert (home / "given.stdout").read_bytes() == b"\xffhello"
    assert not (home / "empty.stdout").exists()


async def test_jobs_hold_no_descriptors_but_their_three(home: Path) -> None:
    wanted = shell(home, "ls /proc/self/fd | tr '\\n' ' '")
    await run(home, order(home, "sleep", "0.1", job="other"), wanted)
    assert text(wanted).split() == ["0", "1", "2", "3"]  # 3 is the folder ls reads


async def test_jobs_can_be_interrupted_as_usual(home: Path) -> None:
    """No signal is ignored on behalf of a job, which exec would pass on."""
    wanted = shell(home, "grep SigIgn /proc/self/status")
    await run(home, wanted)
    ignored = int(text(wanted).split()[1], 16)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        assert not ignored & (1 << (number - 1)), number


# Jobs that cannot start.


@pytest.mark.parametrize(
    ("argv", "changes", "sentence"),
    [
        (["no-such-program"], {}, "there is no program no-such-program in PATH"),
        (["/no/program"], {}, "there is no program /no/program"),
        (["/etc/passwd"], {}, "may not be run: permission denied"),
        (["/etc"], {}, "may not be run: is a folder"),
        (["true"], {"cwd": "/no/folder"}, "the working folder /no/folder does not"),
        (["true"], {"cwd": "/etc/passwd"}, "folder /etc/passwd is not a folder"),
        (["true"], {"stdin": "/no/file"}, "the stdin file /no/file cannot be read"),
        (["true"], {"stdin": "/etc"}, "the stdin file /etc is not a plain file"),
        (["a\0b"], {}, "embedded null"),
        (["/no/\udcff"], {}, "there is no program /no/\ufffd"),
        ([], {}, "the command is empty"),
        (["true", "x" * 131_072], {}, "the arguments and the environment of true are"),
        (["true"], {"stop_signal": "SIGWHAT"}, "SIGWHAT"),
    ],
)
async def test_a_job_that_cannot_start_says_why(
    home: Path, argv: list[str], changes: dict[str, Any], sentence: str
) -> None:
    async with opened(home) as launcher:
        attempt = launcher.launch(order(home, *argv, **changes))
        assert await attempt.started() is None
        receipt = await attempt.exited()
    assert receipt.ending == "spawn"
    assert (receipt.exit_code, receipt.signal, receipt.identity) == (None, None, None)
    assert receipt.error is not None
    assert sentence in receipt.error


async def test_a_script_without_its_interpreter_is_told_from_a_missing_one(
    home: Path,
) -> None:
    script = home / "script"
    script.write_text("#!/no/interpreter\n")
    script.chmod(0o700)
    (receipt,) = await run(home, order(home, str(script)))
    assert receipt.error == f"the interpreter that {script} names does not exist"


async def test_jobs_leave_no_descriptor_open_in_the_agent(home: Path) -> None:
    async with opened(home) as launcher:
        held = Path(f"/proc/{launcher.agent_pid}/fd")
        before = len(list(held.iterdir()))
        wanted = [
            shell(home, "echo out; echo err >&2", job="speaks", output_limit=4),
            order(home, "true", job="silent"),
            order(home, "/no/program", job="missing"),
            order(home, "true", job="folder", cwd="/no/folder"),
            order(home, "/no/program", job="stdin", stdin="/etc/passwd"),
        ]
        for each in wanted:
            await launcher.launch(each).exited()
        assert len(list(held.iterdir())) == before


# Budgets.


async def test_a_job_over_its_time_ends_with_wall(home: Path, lasting: str) -> None:
    (receipt,) = await run(home, order(home, "sleep", lasting, wall=0.2))
    assert (receipt.ending, receipt.signal) == ("wall", "SIGTERM")
    assert not survivors(lasting)


async def test_a_silent_job_ends_with_idle_and_one_that_speaks_does_not(
    home: Path,
) -> None:
    silent = shell(home, "echo; sleep 60", job="silent", idle=0.3)
    script = "for i in 1 2 3 4 5; do sleep 0.5; echo $i; done"
    chatty = shell(home, script, job="chatty", idle=2.0)
    first, second = await run(home, silent, chatty)
    assert first.ending == "idle"
    assert (second.ending, second.exit_code) == ("exit", 0)


# Watching output.


async def test_wait_output_returns_once_more_is_known(home: Path) -> None:
    wanted = shell(home, "echo 12; read -r < first; echo 345 >&2; read -r < second")
    os.mkfifo(home / "first")
    os.mkfifo(home / "second")
    async with opened(home) as launcher:
        attempt = launcher.launch(wanted)
        await launcher.wait_output(named(home), 1, 2)
        assert logs.size(wanted.log, "stdout") == 3
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(launcher.wait_output, named(home), 1, 3)
            await trio.testing.wait_all_tasks_blocked()
            await trio.to_thread.run_sync((home / "first").write_text, "\n")
        assert logs.size(wanted.log, "stderr") == 4
        async with trio.open_nursery() as nursery:
            nursery.start_soon(launcher.wait_output, named(home), 1, 1000)
            await trio.to_thread.run_sync((home / "second").write_text, "\n")
        await attempt.exited()


# What it costs.


async def test_the_agent_stays_small(home: Path) -> None:
    async with opened(home) as launcher:
        attempts = [
            launcher.launch(order(home, "true", job=f"{number}"))
            for number in range(50)
        ]
        for attempt in attempts:
            await attempt.exited()
        status = Path(f"/proc/{launcher.agent_pid}/status").read_text()
    assert int(status.split("VmHWM:")[1].split()[0]) < 20 * 1024


def test_the_agent_loads_nothing_but_the_standard_library() -> None:
    code = (
        f"import sys; sys.path.append({str(ROOT)!r});"
        "import forge_actors.edges.node.agent.node;"
        "print([n for n in sys.modules if n.startswith(('trio','msgspec','psutil',"
        "'forge_actors.domain','asyncio','argparse','logging','pathlib'))])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
