"""On which file systems a lock holds between all processes that could take it.

Over a network `flock` becomes something else, or nothing: on NFS it belongs to a
process instead of a descriptor, so no worker inherits it, and no folder can be locked;
SMB, 9p and FUSE may keep it on one machine only, or ignore it.
"""

from __future__ import annotations

LOCAL = frozenset(
    {
        *("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs"),
        *("tmpfs", "ramfs", "overlay", "apfs", "hfs", "ufs"),
    }
)
SHARED = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "9p", "virtiofs", "vboxsf"),
        *("prl_fs", "ceph", "glusterfs", "lustre", "beegfs", "afs", "gfs2", "ocfs2"),
        "gpfs",
    }
)


def problem(kind: str) -> str | None:
    """Why no lock is to be trusted on a file system of this kind; None if one is."""
    if kind in LOCAL:
        return None
    if kind in SHARED or kind.startswith("fuse."):
        return f"is on {kind!a}, where locks do not hold between all who take them"
    if not kind:
        return "is on a file system of a kind that nobody tells"
    return f"is on {kind!a}, of which is not known that locks hold on it"
