"""What others wrote reaches a terminal without anything that steers it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.runtime.runtime import open_runtime

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell

#: A colour, a title, the cursor, a change of direction, and a C1 control.
EVIL = "\x1b[31mred\x1b]0;title\x07\x1b[2A\u202eturned\x9b7m"


@pytest.fixture
def app(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def on_terminal(folder: Path, *words: str) -> tuple[int, bytes]:
    """The exit status of a call on a terminal, and what it printed there."""
    ours, its = pty.openpty()
    command = [sys.executable, "-m", "forge_actors", *words]
    with subprocess.Popen(
        command, cwd=folder, stdin=its, stdout=its, stderr=its
    ) as running:
        os.close(its)
        printed = b""
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:  # the other end is closed: Linux says EIO
                break
            if not data:
                break
            printed += data
    os.close(ours)
    return running.returncode, printed


def test_a_command_of_run_cannot_steer_the_terminal(app: Path) -> None:
    # The last escape begins a sequence that never ends.
    words = ("run", "--", "printf", "%s", f"{EVIL} done\x1b[")
    assert on_terminal(app, *words) == (0, b"redturned done")


def test_the_output_of_run_goes_into_a_pipe_as_it_is(app: Path) -> None:
    command = [sys.executable, "-m", "forge_actors", "run", "--", "printf", "%s", EVIL]
    done = subprocess.run(command, cwd=app, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (EVIL.encode(), b"")


def test_events_as_json_hold_no_character_that_steers(
    app: Path, tmp_path: Path, shell: Shell
) -> None:
    async def main() -> None:
        async with open_runtime(tmp_path) as runtime:
            job = await runtime.submit(app, ["true"], name=EVIL, labels=[EVIL])
            await job.wait()

    trio.run(main)
    status, out, _ = shell.now("events", "--json", "--kind", "job_queued")
    assert status == 0
    assert "\\u202e" in out
    assert out.replace("\n", "").isprintable()
    assert out.isascii()
