"""Room on a disk: from when on people are warned, and from when on nothing is taken.

Without a limit that somebody has set, what is too little follows from the size of the
disk, so that a small one is of use too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from forge_actors.domain.errors import Refused
from forge_actors.domain.sizes import size_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.domain.maintenance import ClassVisit

#: Bytes that have to be free by themselves, and the part of a smaller disk.
WARN_FREE, WARN_SHARE = 2 << 30, 10
REFUSE_FREE, REFUSE_SHARE = 512 << 20, 20

#: `low`: people are warned. `full`: no new job is taken.
RoomState = Literal["ok", "low", "full"]


class DiskLow(Refused):
    """There is too little room on the disk of the home for another job."""

    code = "DISK_LOW"


class Room(NamedTuple):
    """What a disk has, in bytes."""

    free: int
    total: int


class Thresholds(NamedTuple):
    """Bytes that have to be free; None is what follows from the size of the disk."""

    warn: int | None = None
    refuse: int | None = None

    def of(self, room: Room) -> tuple[int, int]:
        """Both as they are for a disk of this size."""
        warn, refuse = self
        if refuse is None:
            refuse = min(REFUSE_FREE, room.total // REFUSE_SHARE)
        if warn is None:
            warn = max(refuse, min(WARN_FREE, room.total // WARN_SHARE))
        return warn, refuse


def state_of(room: Room, thresholds: Thresholds) -> RoomState:
    warn, refuse = thresholds.of(room)
    if room.free < refuse:
        return "full"
    return "low" if room.free < warn else "ok"


def sizes_of(visits: Iterable[ClassVisit]) -> dict[str, object]:
    """How much the home takes, in all and by class, as the clean-up has found it last.

    A class that it has not measured is not in it.
    """
    sizes = {
        visit.clean_class: visit.size for visit in visits if visit.size is not None
    }
    return {"bytes": sum(sizes.values()), "classes": sizes}


def problem(home: str, room: Room, thresholds: Thresholds) -> str | None:
    """What is wrong with the room there is, in a sentence; None: nothing is."""
    state = state_of(room, thresholds)
    if state == "ok":
        return None
    warn, refuse = thresholds.of(room)
    free = f"{size_text(room.free)} are free on the disk of {home}"
    if state == "full":
        return (
            f"only {free}, so no new job is taken until {size_text(refuse)} are"
            " (setting disk.refuse_free); forge-actors clean removes what may go"
        )
    return (
        f"only {free}, less than {size_text(warn)} (setting disk.warn_free);"
        " forge-actors clean removes what may go"
    )
