"""How much room the disk of a folder has."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from forge_actors.domain.disk import Room

if TYPE_CHECKING:
    from pathlib import Path


def room_of(folder: str | Path) -> Room | None:
    """What we may write there, and how large it is; None if nobody can tell."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    total = disk.f_blocks * disk.f_frsize
    # Without a free inode there is no room for another file, whatever its size.
    usable = disk.f_favail or not disk.f_files
    return (
        Room(disk.f_bavail * disk.f_frsize if usable else 0, total) if total else None
    )
