"""Which file system a folder is on, and whether a home may be there."""

from __future__ import annotations

import os

from forge_actors.domain import mounts

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


def read_mounts() -> str:
    """What is mounted where, as Linux says it; nothing elsewhere."""
    try:
        # Like paths are: what is no UTF-8 in them is compared all the same.
        with open(
            "/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape"
        ) as file:
            return file.read()
    except OSError:
        return ""


def filesystem(path: str) -> str:
    """The kind of file system a path is, or will be, on; empty if nobody can tell."""
    mount = mounts.nearest(read_mounts(), os.path.realpath(path))
    return "" if mount is None else mount.kind


def shared_with_others(path: str) -> str | None:
    """The kind of file system, if other machines may write to it too."""
    kind = filesystem(path)
    return kind if kind in SHARED else None
