"""What Linux tells of the locks of the machine, in `/proc/locks`."""

from __future__ import annotations


def exclusive_holder(text: str, device: tuple[int, int], inode: int) -> int | None:
    """Which process took the exclusive lock of a file: it may have ended by now, and
    others have inherited it. None if the list has no such lock.

    `device` are the major and the minor number of the file's.
    """
    wanted = f"{device[0]:02x}:{device[1]:02x}:{inode}"
    for line in text.splitlines():
        # number: FLOCK ADVISORY WRITE pid device:inode start end; `->` waits for one
        fields = line.split()
        if len(fields) == 8 and fields[1] == "FLOCK" and fields[3] == "WRITE":
            pid = fields[4]
            if fields[5] == wanted and pid.isascii() and pid.isdigit():
                return int(pid)
    return None
