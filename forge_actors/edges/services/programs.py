"""The programs of a manager: called with a limit, and understood when they fail."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from forge_actors.domain.errors import ServiceManagerFailed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SECONDS = 60.0
#: Characters of what a program says that an error repeats.
SHOWN = 300


def called(
    argv: Sequence[str], seconds: float = SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run a program of the manager.

    Raises:
        ServiceManagerFailed: it is not there, or takes too long.
    """
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError:
        raise ServiceManagerFailed(f"there is no {argv[0]} here") from None
    except subprocess.TimeoutExpired:
        raise ServiceManagerFailed(f"{' '.join(argv)} did not end") from None
    except OSError as error:
        raise ServiceManagerFailed(f"{argv[0]}: {error.strerror}") from None


def done(argv: Sequence[str], seconds: float = SECONDS) -> str:
    """What a program of the manager printed.

    Raises:
        ServiceManagerFailed: it failed; with its words.
    """
    result = called(argv, seconds)
    if result.returncode:
        words = (result.stderr or result.stdout).strip()[:SHOWN]
        raise ServiceManagerFailed(
            f"{' '.join(argv)} failed: {words or f'status {result.returncode}'}"
        )
    return result.stdout


def put(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Have a file be so, whole or as it was.

    Raises:
        ServiceManagerFailed: it cannot be written.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(draft, flags, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ServiceManagerFailed(f"{path}: {error.strerror}") from None
