"""Which file systems keep locks, what is mounted where, and what the kernel lists."""

from __future__ import annotations

import pytest

from forge_actors.domain import mounts
from forge_actors.domain.epic.filesystems import LOCAL, SHARED, problem
from forge_actors.domain.epic.kernel_locks import exclusive_holder
from forge_actors.domain.epic.places import is_unfinished, told, unfinished

TABLE = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 8:3 / /srv rw shared:4 - xfs /dev/sda3 rw
24 23 0:50 / /srv/share rw - nfs4 server:/home rw,vers=4.2
25 24 8:3 /local /srv/share/bound rw - xfs /dev/sda3 rw
26 22 0:51 / /mnt/with\040space\134and\011tab rw - cifs //server/share rw
27 22 8:4 / /over rw - ext4 /dev/sdb rw
28 22 0:53 / /over rw - fuse.sshfs someone@server:/ rw
29 22 0:54 / /hidden/deep rw - nfs4 server:/ rw
30 22 8:5 / /hidden rw - btrfs /dev/sdc rw
nonsense
1 2 3 - x
"""


@pytest.mark.parametrize(
    ("path", "device", "kind"),
    [
        ("/", "8:1", "ext4"),
        ("/srv", "8:3", "xfs"),
        ("/srv/shared", "8:3", "xfs"),
        ("/srv/share/repo", "0:50", "nfs4"),
        ("/srv/share/bound/repo", "8:3", "xfs"),
        ("/mnt/with space\\and\ttab/repo", "0:51", "cifs"),
        ("/over/repo", "0:53", "fuse.sshfs"),
        # A mount that is nearer, and was covered by another one later.
        ("/hidden/deep/repo", "8:5", "btrfs"),
        # A file system whose files say a device that is none of a mount.
        ("/hidden/repo", "0:99", "btrfs"),
        ("/hidden/repo", "", "btrfs"),
        ("elsewhere", "", ""),
    ],
)
def test_the_mount_of_a_path_is_found(path: str, device: str, kind: str) -> None:
    found = mounts.nearest(TABLE, path, device)
    assert ("" if found is None else found.kind) == kind


def test_a_table_without_a_line_says_nothing() -> None:
    assert mounts.nearest("", "/", "8:1") is None
    assert mounts.numbered("", "22") is None


def test_an_open_file_tells_its_mount() -> None:
    number = mounts.mount_number("pos:\t0\nflags:\t02100000\nmnt_id:\t27\nino:\t5\n")
    assert number == "27"
    # Another one hides it from those who come by the path.
    found = mounts.numbered(TABLE, number)
    assert found is not None
    assert (found.kind, found.device) == ("ext4", "8:4")
    assert mounts.numbered(TABLE, "2") is None
    assert mounts.mount_number("pos:\t0\n") is None


@pytest.mark.parametrize("kind", sorted(LOCAL))
def test_locks_hold_on_a_disk_of_this_machine(kind: str) -> None:
    assert problem(kind) is None


@pytest.mark.parametrize("kind", [*sorted(SHARED), "fuse.sshfs", "fuse.portal"])
def test_locks_do_not_hold_over_a_network(kind: str) -> None:
    assert (
        problem(kind) == f"is on '{kind}', where locks do not hold between all who"
        " take them"
    )


@pytest.mark.parametrize("kind", ["vfat", "fuse", "fuseblk", "EXT4", "ext4 ", "a\nb"])
def test_what_is_not_known_is_named(kind: str) -> None:
    assert (
        problem(kind) == f"is on {kind!a}, of which is not known that locks hold on it"
    )


def test_a_kind_that_nobody_tells_is_not_trusted() -> None:
    assert problem("") == "is on a file system of a kind that nobody tells"


LOCKS = """
1: FLOCK  ADVISORY  WRITE 23566 fe:00:2188771 0 EOF
2: POSIX  ADVISORY  WRITE 7 fe:00:5 0 EOF
3: FLOCK  ADVISORY  READ 8 fe:00:6 0 EOF
4: FLOCK  ADVISORY  WRITE 9 fe:00:7 0 EOF
4: -> FLOCK  ADVISORY  WRITE 10 fe:00:8 0 EOF
5: FLOCK  ADVISORY  WRITE -1 fe:00:9 0 EOF
"""


@pytest.mark.parametrize(
    ("inode", "pid"),
    [(2188771, 23566), (5, None), (6, None), (7, 9), (8, None), (9, None), (77, None)],
)
def test_the_kernel_lists_who_has_a_lock(inode: int, pid: int | None) -> None:
    assert exclusive_holder(LOCKS, "254:0", inode) == pid
    assert exclusive_holder(LOCKS, "253:0", inode) is None


def test_what_is_unfinished_is_known_by_its_name() -> None:
    assert is_unfinished(unfinished("0123456789abcdef"))
    for name in ("binding.json", ".unfinished-", ".unfinished-0123456789abcdeF"):
        assert not is_unfinished(name)


def test_no_name_of_a_place_is_shown_raw() -> None:
    assert told(("a\x1b[31m", "b\udcff")) == "a\\x1b[31m/b\\udcff"
    assert told(()) == "."
