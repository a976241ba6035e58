"""The command line within this process, which spares the start of an interpreter.

It parses, asks and prints as the program does; only what concerns a process as such
(its signals, its closed streams, what it imports) needs the program itself.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from typing import TYPE_CHECKING
from unittest import mock

from forge_actors.cli import main as program

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: What becomes another program, reads a terminal or looks at the process it is.
OWN_PROCESS = frozenset(
    {"doctor", "mcp", "release", "run", "serve", "service", "watch"}
)


def is_possible(verb: object) -> bool:
    """Streams are of the whole process, so one thread alone may lead them elsewhere."""
    main = threading.main_thread()
    return verb not in OWN_PROCESS and threading.current_thread() is main


def run(words: Sequence[str | bytes | Path], stdin: bytes) -> tuple[int, bytes, bytes]:
    """The exit status, standard output and standard error of a call."""
    out, err = io.BytesIO(), io.BytesIO()
    with (
        contextlib.redirect_stdout(_text(out)) as stdout,
        contextlib.redirect_stderr(_text(err)) as stderr,
        mock.patch.object(sys, "stdin", _text(io.BytesIO(stdin))),
    ):
        status = program.main([os.fsdecode(word) for word in words])
        stdout.flush()
        stderr.flush()
        return status, out.getvalue(), err.getvalue()


def _text(raw: io.BytesIO) -> io.TextIOWrapper:
    return io.TextIOWrapper(raw, encoding="utf-8")
