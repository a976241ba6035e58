"""The command that follows a job: when it runs, what it is told, what it may do."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from forge_actors.domain.launch import AfterJob
from forge_actors.edges.node import wire
from forge_actors.edges.node.agent import after_job
from tests.edges.node_jobs import (
    named,
    opened,
    order,
    read_receipts,
    run,
    shell,
    stop_when_ready,
    survivors,
    text,
)

TELL = 'echo "$FORGE_ENDING:$FORGE_EXIT_CODE:$FORGE_SIGNAL"'


async def test_it_is_told_how_the_job_ended_and_changes_nothing_of_that(
    home: Path,
) -> None:
    failed = shell(home, "exit 3", job="failed", after_job=f"{TELL}; exit 7")
    killed = shell(home, "kill -9 $$", job="killed", after_job=TELL)
    late = shell(home, "sleep 60", job="late", wall=0.2, after_job=TELL)
    first, second, third = await run(home, failed, killed, late)
    assert (first.ending, first.exit_code) == ("exit", 3)
    assert first.after_job == AfterJob(exit_code=7)
    assert (second.signal, second.after_job) == ("SIGKILL", AfterJob(exit_code=0))
    assert (third.ending, third.after_job) == ("wall", AfterJob(exit_code=0))
    assert text(failed) == "exit:3:\n"
    assert text(killed) == "exit::SIGKILL\n"
    assert text(late) == "wall::SIGTERM\n"


async def test_it_runs_in_the_place_of_the_job_and_goes_on_in_its_log(
    home: Path,
) -> None:
    (home / "folder").mkdir()
    (home / "input").write_text("of the job")
    wanted = shell(
        home,
        "echo one; echo two >&2",
        cwd=str(home / "folder"),
        env={"OWN": "é"},
        stdin=str(home / "input"),
        after_job="pwd; echo $OWN $FORGE_JOB_ID; cat; echo three >&2",
    )
    (receipt,) = await run(home, wanted)
    assert text(wanted) == f"one\n{home / 'folder'}\né {named(home)}\n"
    assert text(wanted, "stderr") == "two\nthree\n"
    assert receipt.stdout_bytes == len(text(wanted).encode())
    assert receipt.stderr_bytes == len("two\nthree\n")
    # Why the job failed, if it did, is in what the job itself said.
    assert receipt.stderr_tail == "two\n"


async def test_it_runs_only_when_nothing_of_the_job_is_left(
    home: Path, lasting: str
) -> None:
    script = f"setsid sleep {lasting} & echo $! > pid"
    # A dead one that is not reaped yet would still take a signal.
    alive = "grep -qs '^State:.[^ZX]' /proc/$(cat pid)/status"
    after = f"{alive} && echo alive || echo gone"
    wanted = shell(home, script, after_job=after)
    (receipt,) = await run(home, wanted)
    assert receipt.leftovers
    assert text(wanted) == "gone\n"


async def test_a_job_that_never_began_is_followed_by_nothing(home: Path) -> None:
    (receipt,) = await run(home, order(home, "/no/program", after_job="touch ran"))
    assert (receipt.ending, receipt.after_job) == ("spawn", None)
    assert not (home / "ran").exists()


async def test_it_follows_a_job_that_is_stopped(home: Path) -> None:
    wanted = shell(home, "echo; exec sleep 600", after_job=TELL)
    async with opened(home) as launcher:
        receipt = await stop_when_ready(launcher, wanted)
    assert (receipt.ending, receipt.signal) == ("stop", "SIGTERM")
    assert receipt.after_job == AfterJob(exit_code=0)
    assert text(wanted) == "\nstop::SIGTERM\n"


async def test_it_follows_a_job_that_the_end_of_the_service_ends(home: Path) -> None:
    wanted = shell(home, "echo; exec sleep 600", after_job=TELL)
    async with opened(home) as launcher:
        attempt = launcher.launch(wanted)
        await launcher.wait_output(named(home), 1, 0)
    assert (await attempt.exited()).after_job == AfterJob(exit_code=0)
    assert text(wanted) == "\nowner::SIGTERM\n"


async def test_it_has_a_time_limit_and_all_of_it_is_killed(
    home: Path, lasting: str
) -> None:
    """That of the end of the service, which is the shorter one."""
    command = f"trap '' TERM; setsid sleep {lasting} & sleep {lasting}; sleep {lasting}"
    wanted = shell(home, "echo; exec sleep 600", after_job=command)
    async with opened(home) as launcher:
        attempt = launcher.launch(wanted)
        await launcher.wait_output(named(home), 1, 0)
    receipt = await attempt.exited()
    assert receipt.ending == "owner"
    assert receipt.after_job == AfterJob(signal="SIGKILL", timed_out=True)
    assert not survivors(lasting)
    assert after_job.OWNER_LIMIT < after_job.LIMIT == 60


async def test_a_cancel_ends_it_and_leaves_the_result_of_the_job(home: Path) -> None:
    wanted = shell(home, "exit 3", after_job="echo; exec sleep 600")
    async with opened(home) as launcher:
        receipt = await stop_when_ready(launcher, wanted)
    assert (receipt.ending, receipt.exit_code) == ("exit", 3)
    assert receipt.after_job == AfterJob(signal="SIGTERM")


async def test_the_same_attempt_is_not_started_again_meanwhile(home: Path) -> None:
    wanted = shell(home, "echo ran", after_job="echo after; read -r _ < go")
    os.mkfifo(home / "go")
    async with opened(home) as launcher:
        first = launcher.launch(wanted)
        identity = await first.started()
        await launcher.wait_output(named(home), 1, len("ran\n"))
        launcher.send(wire.start(wanted))
        (home / "go").write_text("\n")
        receipt = await first.exited()
        assert await first.started() == receipt.identity == identity
    assert text(wanted) == "ran\nafter\n"


async def test_a_folder_that_is_gone_is_told(home: Path) -> None:
    (home / "folder").mkdir()
    wanted = shell(
        home, "rmdir ../folder", cwd=str(home / "folder"), after_job="touch ran"
    )
    (receipt,) = await run(home, wanted)
    assert receipt.exit_code == 0
    assert receipt.after_job is not None
    assert receipt.after_job.error is not None
    assert "folder does not exist" in receipt.after_job.error


async def test_the_result_survives_the_death_of_the_agent_meanwhile(
    home: Path, lasting: str
) -> None:
    wanted = shell(home, "exit 3", after_job=f"echo; setsid sleep {lasting} & wait")
    async with opened(home) as launcher:
        attempt = launcher.launch(wanted)
        await launcher.wait_output(named(home), 1, 0)
        os.kill(launcher.agent_pid, signal.SIGKILL)
        receipt = await attempt.exited()
        assert (receipt.ending, receipt.exit_code) == ("exit", 3)
        assert receipt.after_job == AfterJob(unfinished=True)
        assert not receipt.complete
        assert not survivors(lasting)
        written = [
            r for path in (home / "receipts").iterdir() for r in read_receipts(path)
        ]
        assert written == [receipt]


async def test_it_follows_a_job_with_a_terminal_without_one(home: Path) -> None:
    wanted = shell(
        home, "echo one", pty=True, after_job="test -t 1 || echo none; echo err >&2"
    )
    (receipt,) = await run(home, wanted)
    assert receipt.after_job == AfterJob(exit_code=0)
    assert text(wanted) == "one\nnone\n"
    assert text(wanted, "stderr") == "err\n"


async def test_it_leaves_no_descriptor_open_in_the_agent(home: Path) -> None:
    async with opened(home) as launcher:
        held = Path(f"/proc/{launcher.agent_pid}/fd")
        before = len(list(held.iterdir()))
        wanted = shell(home, "echo; echo >&2", output_limit=4, after_job="echo a")
        await launcher.launch(wanted).exited()
        assert len(list(held.iterdir())) == before
