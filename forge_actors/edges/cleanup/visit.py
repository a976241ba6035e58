"""What all classes of the clean-up do alike: open the home, remove, and tell of it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from forge_actors.domain.cleaning import Removal, Skip
from forge_actors.edges.cleanup.folders import Unsafe, opened_home, shown
from forge_actors.edges.cleanup.measuring import Measure
from forge_actors.edges.cleanup.walking import ASIDE, Remover

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.cleaning import CleanClass, Desk
    from forge_actors.edges.cleanup.folders import Entry, Folder
    from forge_actors.edges.cleanup.walking import Removed


class Visit:
    """One class at work in one home."""

    def __init__(
        self, name: CleanClass, desk: Desk, home: Folder, aside: Folder | None
    ) -> None:
        self.name = name
        self.desk = desk
        self.home = home
        self.measure = Measure(desk.may_go_on)
        #: None in a dry run: nothing is moved there, and so it is not made.
        self.remover = None if aside is None else Remover(aside, desk.may_go_on)
        #: Folders of the home that are there and could not be gone into.
        self.barred: set[str] = set()

    @contextmanager
    def folder(self, name: str) -> Iterator[Folder | None]:
        """A folder of the home; None if it is not there, or cannot be gone into, of
        which is told then."""
        found: Folder | None = None
        try:
            found = self.home.folder(name)
        except Unsafe as problem:
            self.barred.add(name)
            self.skip(name, problem.reason)
        except OSError as error:
            self.barred.add(name)
            self.fail(name, os.strerror(error.errno or 0))
        if found is None:
            yield None
            return
        with found:
            yield found

    def remove(
        self, folder: Folder, entry: Entry, reason: str, size: int | None = None
    ) -> bool:
        """Remove a thing, if this is no dry run; whether it is gone from its place.

        `size` is what it takes with all that is in it, where that is known.
        """
        what = self.told(folder, entry.name)
        if self.remover is None:
            if size is None:
                size = self.measure.tree(folder, entry).bytes
            self.desk.removed(Removal(self.name, what, reason, size))
            return True
        removed = self.remover.remove(folder, entry)
        self.told_of(what, reason, removed)
        return removed.gone

    def remove_empty(self, folder: Folder, entry: Entry, reason: str) -> None:
        """Remove a folder with nothing in it; what was put in it just now stays."""
        what = self.told(folder, entry.name)
        if self.remover is not None:
            try:
                found = folder.entry(entry.name)
                if found is None or found.identity != entry.identity:
                    return
                os.rmdir(entry.name, dir_fd=folder.fd)
            except OSError as error:
                self.skip(what, os.strerror(error.errno or 0))
                return
        self.desk.removed(Removal(self.name, what, reason, entry.bytes))

    def told_of(self, what: str, reason: str, removed: Removed) -> None:
        """Tell what a removal came to."""
        if removed.gone:
            self.desk.removed(Removal(self.name, what, reason, removed.bytes))
        for left in removed.left:
            self.skip(left.path, left.reason)
        if removed.unfinished:
            self.skip(what, "there was no time to remove all of it")

    def skip(self, what: str, reason: str) -> None:
        self.desk.skipped(Skip(self.name, shown(what), reason))

    def fail(self, what: str, reason: str) -> None:
        self.desk.failed(shown(what), reason)

    def told(self, folder: Folder, name: str) -> str:
        """A thing by its path in the home."""
        return shown(os.path.relpath(os.path.join(folder.path, name), self.home.path))


@contextmanager
def visiting(name: CleanClass, desk: Desk) -> Iterator[Visit]:
    """A visit of the home.

    Raises:
        Unsafe: it is not what it has to be.
    """
    with opened_home(desk.home) as home:
        if desk.request.dry_run:
            yield Visit(name, desk, home, None)
            return
        with home.make_folder(ASIDE) as aside:
            yield Visit(name, desk, home, aside)
