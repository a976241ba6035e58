"""A root of files in memory: the port `Root` without a disk.

    root = MemoryRoot()
    root.files[("forge-actors", "x")] = b"..."
    root.problems[("forge-actors", "y")] = "no space left on device"

It keeps the contract of `roots_contract.py`, which the real one keeps too.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.places import check, told
from forge_actors.domain.epic.ports import Entry

if TYPE_CHECKING:
    from forge_actors.domain.epic.places import Place


class MemoryRoot:
    """The port `Root` over a table of contents."""

    def __init__(self) -> None:
        self.files: dict[Place, bytes] = {}
        #: Folders that were made; those of files are there too.
        self.folders: set[Place] = set()
        #: What every access to a place fails with.
        self.problems: dict[Place, str] = {}
        #: Places that were written to, created or removed, in that order.
        self.written: list[Place] = []
        #: Files that somebody writes to at the end, whose content is on the disk.
        self._appended: dict[Place, int] = {}

    def read(self, place: Place, limit: int) -> bytes | None:
        self._look_at(place)
        content = self._content(place)
        if content is not None and len(content) > limit:
            raise StateError(f"{told(place)} is longer than {limit} bytes")
        return content

    def write(self, place: Place, content: bytes) -> None:
        self._look_at(place)
        self._make_folders(place)
        self.written.append(place)
        if place in self._appended:
            os.close(self._appended.pop(place))
        self.files[place] = content

    def create(self, place: Place, content: bytes) -> None:
        self._look_at(place)
        if self._content(place) is not None:
            raise StateError(f"{told(place)} is there already")
        self.write(place, content)

    def append(self, place: Place, limit: int) -> int:
        self._look_at(place)
        content = self._content(place) or b""
        if len(content) >= limit:
            raise StateError(f"{told(place)} has {limit} bytes or more")
        self._make_folders(place)
        if place not in self._appended:
            self._appended[place], name = tempfile.mkstemp()
            os.unlink(name)
            os.write(self._appended[place], content)
        self.files[place] = content
        return os.dup(self._appended[place])

    def entries(self, place: Place) -> list[Entry] | None:
        self._look_at(place, folder=True)
        below = {
            each[: len(place) + 1] for each in self._all() if _is_below(each, place)
        }
        if not below and place and place not in self.folders:
            return None
        return sorted(
            Entry(each[-1], "file" if each in self.files else "folder")
            for each in below
        )

    def remove(self, place: Place) -> bool:
        self._look_at(place)
        if self._content(place) is None:
            return False
        self.written.append(place)
        if place in self._appended:
            os.close(self._appended.pop(place))
        del self.files[place]
        return True

    def move(self, place: Place, name: str) -> bool:
        to = (*place[:-1], name)
        check(place)
        check(to)
        if not self._is_there(place):
            return False
        if self._is_there(to):
            raise StateError(f"{told(to)} is there already")
        self.files = {_moved(each, place, to): it for each, it in self.files.items()}
        self.folders = {_moved(each, place, to) for each in self.folders}
        moved = {_moved(each, place, to): it for each, it in self._appended.items()}
        self._appended = moved
        return True

    def close(self) -> None:
        """Close what is on the disk."""
        for file in self._appended.values():
            os.close(file)
        self._appended.clear()

    def _all(self) -> set[Place]:
        return {*self.files, *self.folders}

    def _is_there(self, place: Place) -> bool:
        return any(each[: len(place)] == place for each in self._all())

    def _make_folders(self, place: Place) -> None:
        self.folders.update(place[:end] for end in range(1, len(place)))

    def _content(self, place: Place) -> bytes | None:
        if place in self._appended:
            file = self._appended[place]
            return os.pread(file, os.fstat(file).st_size, 0)
        return self.files.get(place)

    def _look_at(self, place: Place, *, folder: bool = False) -> None:
        """Refuse what is no place, or of another kind, or is to fail."""
        if not place and not folder:
            raise StateError("the root itself is no file")
        check(place)
        if place in self.problems:
            raise StateError(f"{told(place)}: {self.problems[place]}")
        above = {place[:end] for end in range(1, len(place))}
        if not above.isdisjoint(self.files):
            raise StateError(f"{told(place)}: what leads to it is no folder")
        is_folder = any(_is_below(each, place) for each in self._all())
        if place in self.files if folder else is_folder or place in self.folders:
            raise StateError(f"{told(place)} is of another kind than it has to be")


def _is_below(place: Place, folder: Place) -> bool:
    return len(place) > len(folder) and place[: len(folder)] == folder


def _moved(each: Place, place: Place, to: Place) -> Place:
    return (*to, *each[len(place) :]) if each[: len(place)] == place else each
