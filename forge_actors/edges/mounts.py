"""Which file system a folder is on, and whether a home may be there."""

from __future__ import annotations

import os
import re

#: File systems whose locks, or whose memory that processes share, do not hold between
#: all who can write to them: a store there is damaged sooner or later.
SHARED = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre"),
        *("beegfs", "gpfs", "glusterfs", "ocfs2", "gfs2", "ncpfs", "coda", "virtiofs"),
        *("vboxsf", "prl_fs", "vmhgfs", "davfs", "davfs2"),
        *("fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.glusterfs", "fuse.davfs"),
        *("fuse.davfs2", "fuse.vmhgfs-fuse", "fuse.gcsfuse", "fuse.cephfs"),
        *("fuse.ceph", "fuse.smbnetfs", "fuse.curlftpfs", "fuse.juicefs", "fuse.mfs"),
    }
)

_ESCAPE = re.compile(r"\\([0-7]{3})")


def read_mounts() -> str:
    """What is mounted where, as Linux says it; nothing elsewhere."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def filesystem(path: str) -> str:
    """The kind of file system a path is, or will be, on; empty if nobody can tell."""
    path = os.path.realpath(path)
    best, kind = "", ""
    for line in read_mounts().splitlines():
        # id parent device root place options [more ...] - kind source options
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        place = _ESCAPE.sub(lambda found: chr(int(found[1], 8)), fields[4])
        inside = path == place or path.startswith(f"{place.rstrip('/')}/")
        # Of two on one place the later one hides the other.
        if inside and len(place) >= len(best):
            best, kind = place, right.split(" ")[0]
    return kind


def shared_with_others(path: str) -> str | None:
    """The kind of file system, if other machines may write to it too."""
    kind = filesystem(path)
    return kind if kind in SHARED else None
