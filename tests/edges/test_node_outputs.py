"""Outputs of jobs that an agent runs: the file they find, and what is told of it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.launch import AfterJob
from forge_actors.domain.outputs import ToldOutputs
from tests.edges.node_jobs import adopted, named, opened, owner, run, shell, text

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "a-secret-value"


async def test_a_job_finds_a_file_and_what_it_wrote_there_is_told(home: Path) -> None:
    path = home / "job.outputs"
    path.symlink_to(home / "elsewhere")  # left by whoever
    script = (
        'stat -c "%a %F" "$FORGE_OUTPUT"; echo A=1 >> "$FORGE_OUTPUT";'
        ' (sleep 0.1; echo "B=$TOKEN" >> "$FORGE_OUTPUT") & exit 3'
    )
    wanted = shell(
        home,
        script,
        outputs=True,
        secrets={"TOKEN": SECRET},
        after_job='test ! -e "$FORGE_OUTPUT"',
    )
    plain = shell(home, 'echo "${FORGE_OUTPUT-none}"', job="plain")
    late = shell(home, "exec sleep 600", job="late", outputs=True, wall=0.1)
    told, nothing, ended = await run(home, wanted, plain, late)
    # The file is read when nothing is left that writes, and then it goes.
    assert told.outputs == ToldOutputs("A=1\nB=[redacted]\n")
    assert (told.exit_code, told.after_job) == (3, AfterJob(exit_code=0))
    assert text(wanted) == "600 regular empty file\n"
    assert nothing.outputs is None
    assert text(plain) == "none\n"
    assert (ended.ending, ended.outputs) == ("wall", ToldOutputs())
    assert not list(home.glob("*.outputs"))
    assert not (home / "elsewhere").exists()


async def test_what_does_not_count_is_told(home: Path) -> None:
    scripts = {
        "link": ("ln -sf /etc/passwd", "their file cannot be read: Too many levels"),
        "pipe": ("mkfifo -m 600", "their file is no plain file any more"),
        "gone": ("true", "their file cannot be read: No such file or directory"),
        "folder": ("mkdir", "their file is no plain file any more"),
    }
    orders = [
        shell(
            home, f'rm "$FORGE_OUTPUT"; {what} "$FORGE_OUTPUT"', job=job, outputs=True
        )
        for job, (what, _) in scripts.items()
    ]
    for job, size in (("full", 16 << 10), ("long", (16 << 10) + 1)):
        script = f'head -c {size} /dev/zero | tr "\\0" = > "$FORGE_OUTPUT"'
        orders.append(shell(home, script, job=job, outputs=True))
    script = 'printf "A=\\xff" > "$FORGE_OUTPUT"'
    orders.append(shell(home, script, job="bytes", outputs=True))
    *odd, full, too_long, no_text = await run(home, *orders)
    for receipt, (_, problem) in zip(odd, scripts.values(), strict=True):
        assert receipt.outputs is not None
        assert receipt.outputs.error is not None
        assert receipt.outputs.error.startswith(problem)
        assert receipt.outputs.text == ""
    assert full.outputs == ToldOutputs("=" * (16 << 10))
    problem = "their file has more than 16384 bytes"
    assert too_long.outputs == ToldOutputs(error=problem)
    assert no_text.outputs == ToldOutputs(error="their file is not UTF-8")


async def test_a_job_that_cannot_have_one_does_not_start(home: Path) -> None:
    path = home / "job.outputs"
    path.mkdir()
    (receipt,) = await run(home, shell(home, "touch ran", outputs=True))
    assert receipt.ending == "spawn"
    assert receipt.error is not None
    assert receipt.error.startswith("the file for its outputs cannot be made: ")
    assert not (home / "ran").exists()


async def test_they_are_there_for_a_service_that_was_down_meanwhile(
    durable_home: Path,
) -> None:
    home = durable_home
    os.mkfifo(home / "fifo")
    wanted = shell(home, 'read -r < fifo; echo A=1 > "$FORGE_OUTPUT"', outputs=True)
    async with opened(home, owner=owner(1), durable=True) as launcher:
        await launcher.launch(wanted).started()
        mode = (home / "job.outputs").stat().st_mode
        assert stat.S_IMODE(mode) == 0o600
    await trio.to_thread.run_sync((home / "fifo").write_text, "\n")
    async with opened(home, owner=owner(2), durable=True) as launcher:
        # The agent may have ended with its last job, and has written down its end.
        await launcher.reconcile({(named(home), 1): None}, same_boot=True)
        receipt = await adopted(launcher, named(home)).exited()
    assert receipt.outputs == ToldOutputs("A=1\n")
