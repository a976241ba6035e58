"""Where inputs lie that are read by their path."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def folder() -> Path:
    """A folder that goes with this process."""
    path = Path(tempfile.mkdtemp(prefix="forge-fuzz-")).resolve()
    atexit.register(leave)
    return path


def leave() -> None:
    """Have it gone now; the next input makes another one."""
    shutil.rmtree(folder(), ignore_errors=True)
    folder.cache_clear()


def file_of(name: str, data: bytes) -> Path:
    """A file of this name there, with an input in it."""
    path = folder() / name
    path.write_bytes(data)
    return path
