"""Asking a program about itself: briefly, and with nobody to answer it."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Seconds in which it must have answered, and bytes of its answer that are read.
ASK_SECONDS = 10.0
MAX_ANSWER = 64 * 1024


class Answer(NamedTuple):
    """What it printed, and why that is not what was asked for, if so."""

    stdout: str
    stderr: str = ""
    status: int | None = None
    problem: str | None = None


def ask(
    argv: Sequence[str], env: Mapping[str, str], seconds: float = ASK_SECONDS
) -> Answer:
    """Run a program to its end, which is made in time, and read the answer."""
    try:
        asked = subprocess.Popen(
            list(argv),
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return Answer("", problem=f"it cannot be run: {error.strerror}")
    problem = None
    try:
        out, err = asked.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        problem = f"it did not answer within {seconds:.0f} s"
        out = err = b""
    finally:
        # Also what it may have left behind, which would hold its output open.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(asked.pid, signal.SIGKILL)
        asked.kill()
        for stream in (asked.stdout, asked.stderr):
            if stream is not None:
                stream.close()
        asked.wait()
    status = asked.returncode
    if problem is None and status != 0:
        problem = f"it ended with status {status}"
    return Answer(_text(out), _text(err), status, problem)


def _text(data: bytes) -> str:
    return data[:MAX_ANSWER].decode("utf-8", "replace").strip()
