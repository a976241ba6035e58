"""Files that a verb writes for somebody to look at."""

from __future__ import annotations

import os

from forge_actors.cli.verb import note

#: In place of a file: the output.
STDOUT = "-"


def write_out(file: str, text: str) -> None:
    """Write a file that only its owner can read, or to the output."""
    if file == STDOUT:
        print(text.rstrip("\n"))
        return
    # What it tells is nobody else's business, unless somebody gives it to them.
    mode = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with open(os.open(file, mode, 0o600), "w", encoding="utf-8") as out:
        out.write(text)
    note(f"written to {file}")
