"""What is mounted where a folder is. Only Linux tells."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from forge_actors.domain import mounts

if TYPE_CHECKING:
    from forge_actors.domain.mounts import Mount
    from forge_actors.edges.epic.root import FolderRoot


def read_mounts() -> str | None:
    """What is mounted where; None where no such table is."""
    if sys.platform != "linux":
        return None
    return _read("/proc/self/mountinfo")


def mount_of(root: FolderRoot, table: str) -> Mount | None:
    """The mount that a root was opened on; None if nobody can tell.

    Its descriptor says which one; without that it is guessed by the path.
    """
    folder = root.reopen()
    try:
        number = mounts.mount_number(_read(f"/proc/self/fdinfo/{folder}"))
    finally:
        os.close(folder)
    found = None if number is None else mounts.numbered(table, number)
    if found is not None:
        return found
    device, _ = root.identity()
    written = f"{os.major(device)}:{os.minor(device)}"
    return mounts.nearest(table, os.path.realpath(root.path), written)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""
