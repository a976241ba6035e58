"""What Linux tells of the locks of the machine, in `/proc/locks`."""

from __future__ import annotations


def exclusive_holder(text: str, device: str, inode: int) -> int | None:
    """Which process took the exclusive lock of a file: it may have ended by now, and
    others have inherited it. None if the list has no such lock.

    `device` is that of its mount, as the table of mounts writes it.
    """
    major, _, minor = device.partition(":")
    wanted = f"{int(major):02x}:{int(minor):02x}:{inode}"
    for line in text.splitlines():
        # number: FLOCK ADVISORY WRITE pid device:inode start end; `->` waits for one
        fields = line.split()
        if len(fields) == 8 and fields[1] == "FLOCK" and fields[3] == "WRITE":
            pid = fields[4]
            if fields[5] == wanted and pid.isascii() and pid.isdigit():
                return int(pid)
    return None
