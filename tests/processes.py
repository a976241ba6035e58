"""The processes that there are on this machine, as /proc tells."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: How often one without a command line is looked at before that is believed.
LOOKS = 1000


def command_lines() -> Iterator[tuple[int, bytes]]:
    """The pid of each process that lives, and its arguments, each with a zero behind
    it."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            words = b""
            with suppress(OSError):  # it has just ended
                words = _words(folder)
            if words:
                yield int(folder.name), words


def _words(folder: Path) -> bytes:
    """What is just becoming another program has no arguments for a moment."""
    for _ in range(LOOKS):
        if words := (folder / "cmdline").read_bytes():
            return words
        # Who never has any has no program either: a dead one, or one of the kernel's.
        (folder / "exe").readlink()
        os.sched_yield()
    return b""
