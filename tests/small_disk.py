"""A disk of a few kilobytes, or one that takes nothing. Needs root."""

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


def remount(place: Path, *, writable: bool) -> None:
    """Let a small disk take nothing more, or take it again."""
    option = "remount,rw" if writable else "remount,ro"
    subprocess.run(["mount", "-o", option, str(place)], check=True)


@contextlib.contextmanager
def read_only(place: Path) -> Iterator[None]:
    """Let nothing be written to this folder, by root neither."""
    subprocess.run(["mount", "--bind", str(place), str(place)], check=True)
    try:
        options = "remount,bind,ro"
        subprocess.run(["mount", "-o", options, str(place)], check=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
