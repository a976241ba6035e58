"""The class `store`: the log of the store folded back, and its free pages given up."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from forge_actors.domain.cleaning import ClassReport, Removal

if TYPE_CHECKING:
    from forge_actors.domain.cleaning import CleanClass, Desk

#: The files of a store, by what comes behind its name.
FILES = ("", "-wal", "-shm")


class StoreCleaner:
    """Leaves all of it to the owner of the store, who knows whether it is busy."""

    name: CleanClass = "store"

    def run(self, desk: Desk, cursor: str | None) -> ClassReport:
        """See `Cleaner`."""
        desk.scanned()
        if not desk.request.dry_run:
            freed = desk.upkeep()
            if freed:
                what = "free pages of the store"
                desk.removed(Removal(self.name, what, "nothing is in them", freed))
        return ClassReport(self.name, size=_size(desk.home))


def _size(home: str) -> int:
    size = 0
    for suffix in FILES:
        with suppress(FileNotFoundError):
            size += os.lstat(os.path.join(home, f"store.sqlite{suffix}")).st_size
    return size
