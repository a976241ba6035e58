"""What git and the system print."""

from __future__ import annotations

from forge_actors.domain.git_status import GitStatus, parse_status
from forge_actors.domain.mounts import mount_number, mounts, nearest, numbered
from forge_actors.domain.results import MAX_FILES
from forge_actors.edges.git import changes
from fuzzing.target import Broken, Refusing, Target, same, text_of

_read = Refusing(ValueError)


def status(data: bytes) -> None:
    whole = _read(parse_status, data, whole=True)
    cut = _read(parse_status, data, whole=False)
    if whole is not None:
        _check_status(whole)
        if whole.at_least or cut is None or not cut.at_least or cut.clean:
            raise Broken(f"{whole} and {cut} are told of one output")


def _check_status(found: GitStatus) -> None:
    counts = (found.staged, found.unstaged, found.untracked, found.conflicts)
    if min(counts) < 0 or found.clean != (not any(counts)):
        raise Broken(f"{found} is clean and is not")
    if found.branch is not None and len(found.branch) > 256:
        raise Broken("the name of a branch has no bounds")


def differences(data: bytes) -> None:
    files = list(changes._files(data))
    count, added, deleted = changes._totals(data)
    if min(count, added, deleted) < 0 or len(files) > MAX_FILES:
        raise Broken(f"{count} files, {added} and {deleted} lines")
    for file in files:
        file.path.encode()
    same(len({file.path for file in files}), len(files), "each file once")


def tables(data: bytes) -> None:
    text = text_of(data)
    found = mounts(text)
    for mount in found[:5]:
        if numbered(text, mount.number) is None:
            raise Broken(f"{mount} is not found by its number")
        at = nearest(text, mount.place)
        if at is None or len(at.place.rstrip("/")) > len(mount.place):
            raise Broken(f"{mount.place} is on {at}")
    mount_number(text)


TARGETS = (
    Target(
        "git-status",
        "a status is told whole or refused, and one that was cut off is never clean",
        status,
        (
            b"# branch.oid " + b"a" * 40 + b"\0# branch.head main\0"
            b"# branch.upstream origin/main\0# branch.ab +1 -2\0"
            b"1 .M N... 100644 100644 100644 a b f\0? new\0",
            (
                b"# branch.oid (initial)\0# branch.head (detached)\0"
                b"2 R. N... 1 1 1 a b R100 to\0from\0u UU N... x\0! ign\0"
            ),
        ),
        (b"# branch.head ", b"# branch.ab +", b"\x001 ", b"\x002 ", b"\0? ", b"\0u "),
    ),
    Target(
        "git-diff",
        "files and lines of a difference are counted, whatever the files are called",
        differences,
        (
            (
                b":100644 100644 aaa bbb M\0a.txt\0:100644 100644 a b R100\0old\0new\0"
                b"3\t1\ta.txt\x001\t0\t\0old\0new\0-\t-\tbin\0"
            ),
            b":000000 100644 0 1 A\x001\t2\t3\x001\t2\t1\t2\t3\0",
        ),
        (b":100644 100644 ", b"\x001\t2\t", b"-\t-\t", b" R100\0"),
    ),
    Target(
        "mounts",
        "a path is on the nearest mount",
        tables,
        (
            b"22 1 0:21 / / rw - ext4 /dev/a rw\n23 22 0:5 / /a\\040b rw x - tmpfs t\n",
            b"pos:\t0\nmnt_id:\t23\n",
        ),
        (b" - ", b"\\040", b"mnt_id:"),
    ),
)
