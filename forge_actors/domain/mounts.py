"""Which file system a path is on, by the table of mounts that Linux gives."""

from __future__ import annotations

import re

from msgspec import Struct

_ESCAPE = re.compile(r"\\([0-7]{3})")


class Mount(Struct, frozen=True):
    """One line of `/proc/self/mountinfo`."""

    number: str
    #: As the table writes it: `major:minor`.
    device: str
    place: str
    kind: str


def mounts(table: str) -> list[Mount]:
    """What is mounted where, in the order in which it was mounted."""
    found = []
    for line in table.split("\n"):
        # id parent device root place options [more ...] - kind source options
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) >= 5 and right:
            place = _ESCAPE.sub(lambda found: chr(int(found[1], 8)), fields[4])
            kind = right.split(" ")[0]
            found.append(Mount(fields[0], fields[2], place, kind))
    return found


def mount_number(text: str) -> str | None:
    """The mount of an open file, by what `/proc/self/fdinfo` says of it."""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == "mnt_id":
            return value.strip()
    return None


def numbered(table: str, number: str) -> Mount | None:
    """The mount of a number."""
    return next((mount for mount in mounts(table) if mount.number == number), None)


def nearest(table: str, path: str, device: str = "") -> Mount | None:
    """The mount that a path, whose links are resolved, is on; None if nobody can tell.

    A mount of the device that the path says it is on counts before one that is only
    nearer, which another one hides; some file systems say a device that no mount has.
    """
    above = [mount for mount in mounts(table) if _is_below(path, mount.place)]
    of_device = [mount for mount in above if mount.device == device]
    best: Mount | None = None
    for mount in of_device or above:
        # Of two on one place the later one hides the other.
        if best is None or len(mount.place) >= len(best.place):
            best = mount
    return best


def _is_below(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place.rstrip('/')}/")
