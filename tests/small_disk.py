"""A disk of a few kilobytes, for what happens when it is full. Needs root."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not sys.platform.startswith("linux"),
    reason="only root can mount a small disk",
)


@contextlib.contextmanager
def small_disk(place: Path, kib: int) -> Iterator[None]:
    """Mount one at this folder, which is made."""
    place.mkdir(parents=True, exist_ok=True)
    options = f"size={kib}k,mode=0700"
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True
    )
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
