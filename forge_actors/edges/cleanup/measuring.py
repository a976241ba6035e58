"""How much a folder takes on the disk, counted as the disk counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forge_actors.edges.cleanup.folders import Unsafe

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.edges.cleanup.folders import Entry, Folder, Identity

#: Files with several names that are remembered, so that each counts once.
MAX_LINKED = 50_000
#: Folders below each other that are looked into.
MAX_DEPTH = 100
#: Entries between two looks at whether there is time left.
LOOK_EVERY = 256


class Measured(NamedTuple):
    """Bytes on the disk; not `whole` if there was no time or no right to see all."""

    bytes: int
    entries: int
    whole: bool


class Measure:
    """Adds up what is in folders. What is mounted in them is not theirs."""

    def __init__(self, may_go_on: Callable[[], bool] = lambda: True) -> None:
        self._may_go_on = may_go_on
        self._linked: set[Identity] = set()
        self._entries = 0
        self._whole = True
        self._out_of_time = False

    def tree(self, parent: Folder, entry: Entry) -> Measured:
        """One thing, with all that is in it."""
        before = self._entries
        self._whole = True
        size = self._size(parent, entry, 0)
        return Measured(size, self._entries - before, self._whole)

    def contents(self, folder: Folder) -> Measured:
        """All that is in a folder."""
        before = self._entries
        self._whole = True
        size = self._contents(folder, 0)
        return Measured(size, self._entries - before, self._whole)

    def file(self, entry: Entry) -> int:
        """Bytes of something that is no folder; nothing if it has counted already."""
        self._entries += 1
        if entry.links > 1:
            if entry.identity in self._linked:
                return 0
            if len(self._linked) >= MAX_LINKED:
                # From here on each name counts for its share.
                return entry.bytes // entry.links
            self._linked.add(entry.identity)
        return entry.bytes

    def _size(self, parent: Folder, entry: Entry, depth: int) -> int:
        if not entry.is_folder:
            return self.file(entry)
        self._entries += 1
        size = entry.bytes
        if depth == MAX_DEPTH:
            self._whole = False
            return size
        try:
            folder = parent.folder(entry.name, entry.identity)
        except (OSError, Unsafe):
            self._whole = False
            return size
        if folder is None:
            return 0
        with folder:
            return size + self._contents(folder, depth + 1)

    def _contents(self, folder: Folder, depth: int) -> int:
        size = 0
        try:
            for entry in folder.entries():
                if self._entries % LOOK_EVERY == 0 and not self._may_go_on():
                    self._out_of_time = True
                if self._out_of_time:
                    self._whole = False
                    break
                size += self._size(folder, entry, depth)
        except OSError:
            self._whole = False
        return size
