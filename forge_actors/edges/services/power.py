"""Holding off the sleep of the machine: by a helper that ends with whoever holds it.

The helper reads a pipe of ours, or watches our process, so that nothing keeps a machine
awake once we are gone, however that happened.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

WHO = "Forge Actors"
WHY = "jobs run"
#: Seconds in which a helper that was told to end has ended.
END_SECONDS = 2.0


def inhibitor() -> list[str] | None:
    """The command that holds off sleep as long as its input lasts; None: there is none
    here."""
    if sys.platform == "darwin":
        found = shutil.which("caffeinate")
        return None if found is None else [found, "-i", "-s", "-w", str(os.getpid())]
    found = shutil.which("systemd-inhibit")
    if found is None:
        return None
    what = ["--what=sleep", f"--who={WHO}", f"--why={WHY}", "--mode=block"]
    return [found, *what, "cat"]


@asynccontextmanager
async def holding(command: list[str]) -> AsyncIterator[trio.Process]:
    """Sleep is held off while the block lasts, and the process it gives lives.

    Raises:
        OSError: the command cannot be started.
    """
    process = await trio.lowlevel.open_process(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with trio.CancelScope(shield=True):
            assert process.stdin is not None, "it has a pipe"
            await process.stdin.aclose()
            if sys.platform == "darwin":
                process.terminate()
            with trio.move_on_after(END_SECONDS):
                await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
