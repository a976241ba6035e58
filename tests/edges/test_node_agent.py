"""The node agent with real processes: every kind of tree must end, and be told of."""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

import forge_actors
from forge_actors.domain.errors import LauncherDown
from forge_actors.domain.launch import LaunchOrder, Receipt
from forge_actors.edges.node import launcher as launcher_module
from forge_actors.edges.node import logs
from forge_actors.edges.node.agent import tree
from forge_actors.edges.node.launcher import (
    NodeLauncher,
    open_launcher,
    previous_receipts,
    remove_receipts,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection

ROOT = Path(forge_actors.__file__).parents[1]
_numbers = itertools.count()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def lasting() -> str:
    """A sleeping time nobody else uses, so that a survivor can be told by it."""
    return f"{4711 + next(_numbers)}.{os.getpid():07d}37"


def survivors(lasting: str) -> list[str]:
    """The command lines of living processes that contain the sleeping time."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, UnicodeDecodeError):
            continue
        if lasting in line and int(folder.name) != os.getpid():
            found.append(f"{folder.name} {line}")
    return found


def order(home: Path, *argv: str, job: str = "job", **changes: Any) -> LaunchOrder:
    attempt = changes.pop("attempt", 1)
    marks = {"FORGE_JOB_ID": job, "FORGE_ATTEMPT": str(attempt)}
    values: dict[str, Any] = {
        "job": job,
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
async def opened(home: Path) -> AsyncGenerator[NodeLauncher, None]:
    async with open_launcher(home) as launcher:
        yield launcher
        log = (home / "agent.log").read_text()
        assert log == ""


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
    chunk = logs.read(wanted.log, stream, 0, 1 << 20, wanted.output_limit)
    return chunk.data.decode()


# Plain ends.


async def test_a_receipt_tells_how_the_job_ended(home: Path) -> None:
    wanted = shell(home, "echo out; echo err >&2; exit 3")
    (receipt,) = await run(home, wanted)
    assert (receipt.ending, receipt.exit_code, receipt.signal) == ("exit", 3, None)
    assert (receipt.job, receipt.attempt, receipt.fence) == ("job", 1, 7)
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
    data = logs.read(wanted.log, "stdout", 0, 1 << 20, 1 << 20).data
    path = os.fsencode(os.environ["PATH"])
    marks = [b"FORGE_JOB_ID=job", b"FORGE_ATTEMPT=1"]
    assert sorted(data.split(b"\0")) == sorted(
        [b"", b"A=1\n2", b"B\xff=\xfe", b"PATH=" + path, *marks]
    )


async def test_arguments_pass_byte_for_byte(home: Path) -> None:
    arguments = ["--", "-n", "", "a\nb", "é漢", os.fsdecode(bytes(range(1, 256)))]
    program = "import os,sys; os.write(1, b'|'.join(map(os.fsencode, sys.argv[1:])))"
    wanted = order(home, sys.executable, "-c", program, *arguments)
    await run(home, wanted)
    data = logs.read(wanted.log, "stdout", 0, 1 << 20, 1 << 20).data
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
        (["a\0b"], {}, "embedded null byte"),
        (["/no/\udcff"], {}, "there is no program /no/\ufffd"),
        ([], {}, "the command is empty"),
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


# Trees.


async def test_a_grandchild_that_holds_the_output_does_not_delay_the_end(
    home: Path, lasting: str
) -> None:
    wanted = shell(home, f"setsid sleep {lasting} & echo done")
    began = trio.current_time()
    (receipt,) = await run(home, wanted)
    assert trio.current_time() - began < 10
    assert (receipt.ending, receipt.exit_code) == ("exit", 0)
    assert receipt.output_held
    assert len(receipt.leftovers) == 1
    assert receipt.leftovers[0].endswith(" sleep")
    assert text(wanted) == "done\n"
    assert not survivors(lasting)


async def test_stop_ends_the_whole_pipeline(home: Path, lasting: str) -> None:
    async with opened(home) as launcher:
        wanted = shell(home, f"echo; sleep {lasting} | cat")
        receipt = await stop_when_ready(launcher, wanted)
        assert receipt.ending == "stop"
        assert receipt.signal == "SIGTERM"
        assert not receipt.forced
        assert not survivors(lasting)


DOUBLE_FORK = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("env", ["env", *sys.argv[2:], "sleep", sys.argv[1]])
    os._exit(0)
os.wait()
os.write(1, b"forked")
"""


@pytest.mark.parametrize("emptied", [[], ["-i"]], ids=["marked", "unmarked"])
async def test_stop_reaches_daemons_in_sessions_of_their_own(
    home: Path, lasting: str, emptied: list[str]
) -> None:
    daemon = shlex.join([sys.executable, "-c", DOUBLE_FORK, lasting, *emptied])
    async with opened(home) as launcher:
        receipt = await stop_when_ready(launcher, shell(home, f"{daemon}; sleep 60"))
        assert receipt.ending == "stop"
        assert not receipt.forced
        assert not survivors(lasting)


@pytest.mark.parametrize("emptied", [[], ["-i"]], ids=["marked", "unmarked"])
async def test_a_daemon_is_left_over_when_its_job_ends(
    home: Path, lasting: str, emptied: list[str]
) -> None:
    daemon = [sys.executable, "-c", DOUBLE_FORK, lasting, *emptied]
    (receipt,) = await run(home, order(home, *daemon))
    assert (receipt.ending, receipt.exit_code) == ("exit", 0)
    assert [each.split()[1] for each in receipt.leftovers] == ["sleep"]
    assert not survivors(lasting)


async def test_an_unmarked_daemon_lives_as_long_as_a_job_it_may_belong_to(
    home: Path, lasting: str
) -> None:
    daemon = [sys.executable, "-c", DOUBLE_FORK, lasting, "-i"]
    async with opened(home) as launcher:
        older = launcher.launch(order(home, "sleep", "60", job="older"))
        await older.started()
        receipt = await launcher.launch(order(home, *daemon, job="daemon")).exited()
        assert receipt.leftovers == ()
        assert len(survivors(lasting)) == 1
        older.stop()
        receipt = await older.exited()
        assert (receipt.ending, receipt.forced) == ("stop", False)
        assert not survivors(lasting)


async def test_the_grace_covers_what_outlives_a_polite_leader(
    home: Path, lasting: str
) -> None:
    script = (
        f'trap "exit 0" TERM; (trap "" TERM; exec sleep {lasting}) & '
        f"(sleep 0.1; echo) & wait; wait"
    )
    async with opened(home) as launcher:
        receipt = await stop_when_ready(launcher, shell(home, script), grace=0.3)
        assert (receipt.ending, receipt.exit_code) == ("stop", 0)
        assert receipt.forced
        assert not survivors(lasting)


async def test_a_job_that_ignores_the_stop_signal_is_killed_after_the_grace(
    home: Path, lasting: str
) -> None:
    script = f'trap "" TERM; echo; while :; do sleep 0.2; : {lasting}; done'
    async with opened(home) as launcher:
        began = trio.current_time()
        receipt = await stop_when_ready(launcher, shell(home, script), grace=0.5)
        assert trio.current_time() - began >= 0.5
        assert (receipt.ending, receipt.signal) == ("stop", "SIGKILL")
        assert receipt.forced
        assert not survivors(lasting)


async def test_a_second_stop_shortens_the_grace_and_never_lengthens_it(
    home: Path,
) -> None:
    script = 'trap "" TERM; echo; while :; do sleep 0.2; done'
    async with opened(home) as launcher:
        attempt = launcher.launch(shell(home, script))
        await launcher.wait_output("job", 1, 0)
        attempt.stop(grace=60)
        attempt.stop(grace=0.1, ending="wall")
        attempt.stop(grace=60)
        receipt = await attempt.exited()
        assert (receipt.ending, receipt.forced) == ("stop", True)


async def test_the_stop_signal_is_sent_once_and_clean_up_is_left_alone(
    home: Path,
) -> None:
    script = """
    trap 'echo stop; sleep 0.3 && echo cleaned; exit 0' INT
    echo ready
    while :; do sleep 0.05; done
    """
    wanted = shell(home, script, stop_signal="SIGINT")
    async with opened(home) as launcher:
        receipt = await stop_when_ready(launcher, wanted)
    assert receipt.exit_code == 0
    assert text(wanted) == "ready\nstop\ncleaned\n"


async def test_last_words_reach_the_log(home: Path) -> None:
    wanted = shell(
        home, 'trap "echo bye; exit 0" TERM; echo; while :; do sleep .1; done'
    )
    async with opened(home) as launcher:
        await stop_when_ready(launcher, wanted)
    assert text(wanted).endswith("bye\n")


async def test_a_stopped_job_can_be_stopped_politely(home: Path) -> None:
    script = 'trap "echo bye; exit 0" TERM; echo; kill -STOP $$; sleep 60'
    wanted = shell(home, script)
    async with opened(home) as launcher:
        receipt = await stop_when_ready(launcher, wanted)
    assert receipt.exit_code == 0
    assert not receipt.forced
    assert text(wanted) == "\nbye\n"


async def test_killing_only_the_leader_ends_the_rest(home: Path, lasting: str) -> None:
    async with opened(home) as launcher:
        attempt = launcher.launch(shell(home, f"echo; sleep {lasting}; true"))
        identity = await attempt.started()
        assert identity is not None
        await launcher.wait_output("job", 1, 0)
        os.kill(identity.pid, signal.SIGKILL)
        receipt = await attempt.exited()
        assert (receipt.ending, receipt.signal) == ("exit", "SIGKILL")
        assert not survivors(lasting)


async def test_leftovers_may_stay_if_the_job_says_so(home: Path, lasting: str) -> None:
    wanted = shell(home, f"setsid sleep {lasting} & echo", keep_leftovers=True)
    try:
        began = trio.current_time()
        async with opened(home) as launcher:
            receipt = await launcher.launch(wanted).exited()
            assert trio.current_time() - began < 1.5
            # A job that ends next to it must not take it along either.
            await launcher.launch(order(home, "true", job="next")).exited()
        assert receipt.output_held
        assert len(receipt.leftovers) == 1
        assert len(survivors(lasting)) == 1
    finally:
        for line in survivors(lasting):
            os.kill(int(line.split()[0]), signal.SIGKILL)


async def test_stop_right_after_launch_ends_the_job(home: Path, lasting: str) -> None:
    async with opened(home) as launcher:
        attempts = []
        for number in range(50):
            wanted = order(home, "sleep", lasting, job=f"job-{number}")
            attempts.append(launcher.launch(wanted))
            attempts[-1].stop()
        for attempt in attempts:
            assert (await attempt.exited()).ending == "stop"
        assert not survivors(lasting)


async def test_jobs_that_fork_twice_leave_no_defunct_child(home: Path) -> None:
    script = "(setsid true &) & (sleep 0.01 &)"
    async with opened(home) as launcher:
        attempts = [
            launcher.launch(shell(home, script, job=f"job-{number}"))
            for number in range(200)
        ]
        for attempt in attempts:
            assert (await attempt.exited()).exit_code == 0
        children = [
            process
            for process in tree.Snapshot().processes.values()
            if process.parent == launcher.agent_pid
        ]
        assert children == []


# Budgets.


async def test_a_job_over_its_time_ends_with_wall(home: Path, lasting: str) -> None:
    (receipt,) = await run(home, order(home, "sleep", lasting, wall=0.2))
    assert (receipt.ending, receipt.signal) == ("wall", "SIGTERM")
    assert not survivors(lasting)


async def test_a_silent_job_ends_with_idle_and_one_that_speaks_does_not(
    home: Path,
) -> None:
    silent = shell(home, "echo; sleep 60", job="silent", idle=0.3)
    script = "for i in 1 2 3 4 5 6; do sleep 0.1; echo $i; done"
    chatty = shell(home, script, job="chatty", idle=0.5)
    first, second = await run(home, silent, chatty)
    assert first.ending == "idle"
    assert (second.ending, second.exit_code) == ("exit", 0)


# Watching output.


async def test_wait_output_returns_once_more_is_known(home: Path) -> None:
    wanted = shell(home, "echo 12; read -r < fifo; echo 345 >&2; read -r < fifo")
    os.mkfifo(home / "fifo")
    async with opened(home) as launcher:
        attempt = launcher.launch(wanted)
        await launcher.wait_output("job", 1, 2)
        assert logs.size(wanted.log, "stdout") == 3
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(launcher.wait_output, "job", 1, 3)
            await trio.testing.wait_all_tasks_blocked()
            await trio.to_thread.run_sync((home / "fifo").write_text, "\n")
        assert logs.size(wanted.log, "stderr") == 4
        async with trio.open_nursery() as nursery:
            nursery.start_soon(launcher.wait_output, "job", 1, 1000)
            await trio.to_thread.run_sync((home / "fifo").write_text, "\n")
        await attempt.exited()


# The ends of the service and of the agent.

OWNER = """
import os, sys, trio
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.edges.test_node_agent import open_launcher, shell
async def main():
    home = Path(sys.argv[2])
    async with open_launcher(home) as launcher:
        script = f'trap "" TERM; echo; sleep {sys.argv[3]}'
        launcher.launch(shell(home, script, grace=0.5))
        launcher.launch(shell(home, f"setsid sleep {sys.argv[3]} & wait", job="calm"))
        await launcher.wait_output("job", 1, 0)
        os.write(1, b"ready")
        await trio.sleep_forever()
trio.run(main)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
async def test_when_the_owner_dies_everything_is_ended_and_written_down(
    home: Path, lasting: str, number: signal.Signals
) -> None:
    owner = await trio.lowlevel.open_process(
        [sys.executable, "-c", OWNER, str(ROOT), str(home), lasting],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    async with owner.stdout as output:  # type: ignore[union-attr]
        assert await output.receive_some() == b"ready"
        owner.send_signal(number)
        await owner.wait()
    found = {receipt.job: receipt for receipt in await previous_receipts(home)}
    assert not survivors(lasting)
    assert {job: receipt.ending for job, receipt in found.items()} == {
        "job": "owner",
        "calm": "owner",
    }
    assert found["job"].forced
    assert not found["calm"].forced
    (home / "receipts" / "0-torn.jsonl").write_text('{"job":"torn","att')
    assert len(await previous_receipts(home)) == 2
    remove_receipts(home)
    assert await previous_receipts(home) == []


async def test_leaving_ends_what_runs_and_tells_of_it(home: Path, lasting: str) -> None:
    async with opened(home) as launcher:
        attempt = launcher.launch(order(home, "sleep", lasting))
        await attempt.started()
    assert (await attempt.exited()).ending == "owner"
    assert not survivors(lasting)
    with pytest.raises(ProcessLookupError):
        os.kill(launcher.agent_pid, 0)


async def test_cancelling_leaves_nothing_behind(home: Path, lasting: str) -> None:
    with trio.move_on_after(0.3):
        async with open_launcher(home) as launcher:
            attempt = launcher.launch(order(home, "sleep", lasting))
            await trio.sleep_forever()
    assert (await attempt.exited()).ending == "owner"
    assert not survivors(lasting)


async def test_when_the_agent_is_killed_its_jobs_are_lost_and_a_new_one_starts(
    home: Path, lasting: str
) -> None:
    daemon = [sys.executable, "-c", DOUBLE_FORK, lasting]
    async with open_launcher(home) as launcher:
        calm = launcher.launch(order(home, "sleep", lasting, job="calm"))
        script = f"{shlex.join(daemon)}; sleep 60"
        wild = launcher.launch(shell(home, script, job="wild"))
        await launcher.wait_output("wild", 1, 0)
        first = launcher.agent_pid
        os.kill(first, signal.SIGKILL)
        for attempt in (calm, wild):
            receipt = await attempt.exited()
            assert receipt.ending == "lost"
            assert receipt.exit_code is None
            assert receipt.identity == attempt.identity
        assert not survivors(lasting)
        again = launcher.launch(order(home, "true", job="again"))
        assert (await again.exited()).exit_code == 0
        assert launcher.agent_pid != first


async def test_a_receipt_that_only_the_dead_agent_knew_is_not_lost(home: Path) -> None:
    os.mkfifo(home / "fifo")
    async with open_launcher(home) as launcher:
        attempt = launcher.launch(shell(home, "read -r < fifo; exit 3"))
        await attempt.started()
        agent = launcher._agent
        (home / "fifo").write_text("\n")
        # Nobody else runs meanwhile, so the launcher hears nothing of all this; and
        # what the agent has sent is taken away, as if it had died before sending.
        while not agent.journal.read_bytes():
            os.sched_yield()
        os.kill(agent.process.pid, signal.SIGKILL)
        ended = os.WEXITED | os.WNOWAIT
        os.waitid(os.P_PID, agent.process.pid, ended)  # noqa: ASYNC222 - see above
        with contextlib.suppress(BlockingIOError, ConnectionResetError):
            agent.socket.recv(1 << 16)
        receipt = await attempt.exited()
        assert (receipt.ending, receipt.exit_code) == ("exit", 3)


async def test_an_agent_that_keeps_dying_is_given_up(home: Path) -> None:
    async with open_launcher(home) as launcher:
        for number in range(5):
            attempt = launcher.launch(order(home, "sleep", "60", job=f"{number}"))
            await attempt.started()
            os.kill(launcher.agent_pid, signal.SIGKILL)
            assert (await attempt.exited()).ending == "lost"
        with pytest.raises(LauncherDown, match="times within a minute"):
            launcher.launch(order(home, "true", job="next"))


async def test_what_is_launched_between_two_agents_waits_for_the_next(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_launcher(home) as launcher:
        between = []
        real = launcher_module.sweep

        async def sweep_and_launch(attempts: Collection[tuple[str, int]]) -> bool:
            wanted = order(home, "true", job=f"between-{len(between)}")
            between.append(launcher.launch(wanted))
            return await real(attempts)

        monkeypatch.setattr(launcher_module, "sweep", sweep_and_launch)
        for number in range(5):
            attempt = launcher.launch(order(home, "sleep", "60", job=f"{number}"))
            await attempt.started()
            os.kill(launcher.agent_pid, signal.SIGKILL)
            assert (await attempt.exited()).ending == "lost"
            ending = "exit" if number < 4 else "spawn"
            assert (await between[number].exited()).ending == ending


async def test_a_home_has_one_agent(home: Path) -> None:
    async with opened(home):
        with pytest.raises(LauncherDown, match="ended at its start"):
            async with open_launcher(home):
                pass
        assert "another node agent" in (home / "agent.log").read_text()
        (home / "agent.log").write_text("")


async def test_interrupts_do_not_end_the_agent(home: Path) -> None:
    async with opened(home) as launcher:
        pid = launcher.agent_pid
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGHUP)
        assert (await launcher.launch(order(home, "true")).exited()).exit_code == 0
        assert launcher.agent_pid == pid


async def test_sigterm_to_the_agent_ends_its_jobs(home: Path, lasting: str) -> None:
    async with open_launcher(home) as launcher:
        attempt = launcher.launch(order(home, "sleep", lasting))
        await attempt.started()
        os.kill(launcher.agent_pid, signal.SIGTERM)
        assert (await attempt.exited()).ending == "owner"
        assert not survivors(lasting)


# What it costs.


def test_the_agent_starts_fast_and_stays_small(home: Path) -> None:
    async def once() -> tuple[float, int]:
        began = time.perf_counter()
        async with opened(home) as launcher:
            ready = time.perf_counter() - began
            attempts = [
                launcher.launch(order(home, "true", job=f"{number}"))
                for number in range(50)
            ]
            for attempt in attempts:
                await attempt.exited()
            status = Path(f"/proc/{launcher.agent_pid}/status").read_text()
            return ready, int(status.split("VmHWM:")[1].split()[0])

    measured = [trio.run(once) for _ in range(7)]
    assert statistics.median(seconds for seconds, _ in measured) < 0.15
    assert max(kib for _, kib in measured) < 20 * 1024


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
