"""The files of EPIC runs in memory, and failures at chosen writes.

    files = MemoryRoot()
    files.plant(("forge-actors", "issues", "12", "binding.json"), "a link")
    faulty = FaultyRoot(files)  # any other root as well
    faulty.fail_at(2)  # the second write from now on fails, and changes nothing
    faulty.crash_after(3)  # the third one is done, and then everything ends

They keep the contract of `roots_contract.py`, which the real root keeps too.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, TypeVar

from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.places import check, told
from forge_actors.domain.epic.ports import Entry

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.epic.places import Place
    from forge_actors.domain.epic.ports import Root


T = TypeVar("T")


class Crash(Exception):
    """The machine stops here. Nothing but a test expects it."""


class MemoryRoot:
    """The port `Root` without a disk, but for files that are appended to.

    It keeps the contract of `roots_contract.py`, which the real one keeps too.
    """

    def __init__(self) -> None:
        self.files: dict[Place, bytes] = {}
        #: What is neither a file nor a folder, and what it is.
        self.odd: dict[Place, str] = {}
        self.folders: set[Place] = {()}
        #: Files that somebody writes to at the end; what is in them is on the disk.
        self._logs: dict[Place, int] = {}
        #: Places that were found to be some: each is asked for often.
        self._checked: set[Place] = set()

    def close(self) -> None:
        """Close what is on the disk."""
        for log in self._logs.values():
            os.close(log)
        self._logs.clear()

    def plant(self, place: Place, what: str) -> None:
        """Have something be there that is no file, such as a link or a FIFO."""
        self._make(place[:-1])
        self._forget_log(place)
        self.files.pop(place, None)
        self.odd[place] = what

    def read(self, place: Place, limit: int) -> bytes | None:
        if not self._looked_for(place):
            return None
        content = self._content(place)
        if content is not None and len(content) > limit:
            raise StateError(f"{told(place)} is longer than {limit} bytes")
        return content

    def write(self, place: Place, content: bytes) -> None:
        self._looked_for(place)
        self._make(place[:-1])
        self._forget_log(place)
        self.files[place] = content

    def create(self, place: Place, content: bytes) -> None:
        if self._looked_for(place) and place in self.files:
            raise StateError(f"{told(place)} is there already")
        self.write(place, content)

    def append(self, place: Place, limit: int) -> int:
        content = self.read(place, limit) or b""
        if len(content) >= limit:
            raise StateError(f"{told(place)} has {limit} bytes or more")
        if place not in self._logs:
            self.write(place, content)
            self._logs[place], name = tempfile.mkstemp()
            os.unlink(name)
            os.write(self._logs[place], content)
        return os.dup(self._logs[place])

    def entries(self, place: Place) -> list[Entry] | None:
        check(place)
        if place in self.files:
            raise StateError(f"{told(place)} is no folder")
        if not self._walked((*place, "")) or place not in self.folders:
            return None
        kinds = dict.fromkeys(self.folders - {()}, "folder")
        kinds |= dict.fromkeys(self.files, "file")
        kinds |= dict.fromkeys(self.odd, "other")
        return sorted(
            Entry(each[-1], kind)  # type: ignore[arg-type]
            for each, kind in kinds.items()
            if each[:-1] == place
        )

    def remove(self, place: Place) -> bool:
        check(place)
        if not self._walked(place):
            return False
        if place in self.folders:
            raise StateError(f"{told(place)} is a folder")
        there = place in self.files or place in self.odd
        self._forget_log(place)
        self.files.pop(place, None)
        self.odd.pop(place, None)
        return there

    def move(self, place: Place, name: str) -> bool:
        to = (*place[:-1], name)
        check(to)
        if not self._walked(place) or not self._is_there(place):
            return False
        if self._is_there(to):
            raise StateError(f"{told(to)} is there already")
        self.files = {_moved(each, place, to): it for each, it in self.files.items()}
        self.odd = {_moved(each, place, to): it for each, it in self.odd.items()}
        self.folders = {_moved(each, place, to) for each in self.folders}
        self._logs = {_moved(each, place, to): it for each, it in self._logs.items()}
        return True

    def _content(self, place: Place) -> bytes | None:
        log = self._logs.get(place)
        if log is not None:
            return os.pread(log, os.fstat(log).st_size, 0)
        return self.files.get(place)

    def _forget_log(self, place: Place) -> None:
        log = self._logs.pop(place, None)
        if log is not None:
            os.close(log)

    def _is_there(self, place: Place) -> bool:
        return place in self.files or place in self.odd or place in self.folders

    def _looked_for(self, place: Place) -> bool:
        """Whether there may be a file; what is there instead is refused."""
        if place not in self._checked:
            check(place)
            self._checked.add(place)
        if not self._walked(place):
            return False
        if place in self.odd or place in self.folders:
            what = self.odd.get(place, "a folder")
            raise StateError(f"{told(place)} is no regular file but {what}")
        return True

    def _walked(self, place: Place) -> bool:
        """Whether the folder is there; what is in the way instead is refused."""
        for depth in range(1, len(place)):
            way = place[:depth]
            if way in self.files or way in self.odd:
                raise StateError(f"{told(way)} is no folder")
            if way not in self.folders:
                return False
        return True

    def _make(self, place: Place) -> None:
        self.folders |= {place[:depth] for depth in range(1, len(place) + 1)}


def _moved(each: Place, place: Place, to: Place) -> Place:
    return (*to, *each[len(place) :]) if each[: len(place)] == place else each


class FaultyRoot:
    """A root, with failures at chosen writes: creating, writing, removing, moving."""

    def __init__(self, root: Root) -> None:
        self._root = root
        #: What was written, in order.
        self.log: list[Place] = []
        self._fails: set[int] = set()
        self._crashes: set[int] = set()

    def fail_at(self, *writes: int) -> None:
        """Have these writes fail, counted from the next one."""
        self._fails |= {len(self.log) + each for each in writes}

    def crash_after(self, *writes: int) -> None:
        """Have everything end once these writes are done."""
        self._crashes |= {len(self.log) + each for each in writes}

    def read(self, place: Place, limit: int) -> bytes | None:
        return self._root.read(place, limit)

    def write(self, place: Place, content: bytes) -> None:
        self._written(place, lambda: self._root.write(place, content))

    def create(self, place: Place, content: bytes) -> None:
        self._written(place, lambda: self._root.create(place, content))

    def append(self, place: Place, limit: int) -> int:
        return self._root.append(place, limit)

    def entries(self, place: Place) -> list[Entry] | None:
        return self._root.entries(place)

    def remove(self, place: Place) -> bool:
        return self._written(place, lambda: self._root.remove(place))

    def move(self, place: Place, name: str) -> bool:
        return self._written(place, lambda: self._root.move(place, name))

    def _written(self, place: Place, write: Callable[[], T]) -> T:
        self.log.append(place)
        number = len(self.log)
        if number in self._fails:
            raise StateError(f"{told(place)}: no space left on device")
        done = write()
        if number in self._crashes:
            raise Crash(f"after write {number}: {told(place)}")
        return done
