"""The locks that a worker inherits: proven, and kept from what it starts itself."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.places import run_lock, told, within
from forge_actors.edges.epic import flock

if TYPE_CHECKING:
    from forge_actors.domain.epic.places import Place
    from forge_actors.edges.epic.root import FolderRoot


def keep(*descriptors: int) -> None:
    """Have nobody inherit them from us.

    To be called before anything is started: what has one of them keeps the lock after
    our end.

    Raises:
        StateError: one is closed.
    """
    for descriptor in descriptors:
        try:
            os.set_inheritable(descriptor, False)
        except (OSError, OverflowError):
            raise StateError(f"the descriptor {descriptor} is closed") from None


def prove(
    root: FolderRoot, issue: int, controller: int, run: int, folder: Place = ()
) -> None:
    """Make sure that these hold both locks; `folder` as of the locks.

    Raises:
        StateError: one is closed, of another file, or not what holds the lock.
    """
    _prove(root, controller, ())
    _prove(root, run, within(run_lock(issue), folder))


def _prove(root: FolderRoot, descriptor: int, place: Place) -> None:
    """The root itself is the place of the controller's lock."""
    name = f"the descriptor {descriptor} for {told(place)}"
    try:
        mode = os.fstat(descriptor).st_mode
        if not (stat.S_ISREG(mode) if place else stat.S_ISDIR(mode)):
            raise StateError(f"{name} is of another kind of file")
        if not root.is_at(descriptor, place):
            raise StateError(f"{name} is of another file")
        fresh = root.open_lock(place, make=False) if place else root.reopen()
        if fresh is None:
            raise StateError(f"{name} is of a file that was removed")
        try:
            if flock.look(fresh):
                raise StateError(f"{name} has no lock, and nobody has it")
        finally:
            os.close(fresh)
        if not flock.lock(descriptor):
            raise StateError(f"{name} has no lock, and somebody else has it")
    except (OSError, OverflowError) as error:
        problem = getattr(error, "strerror", None) or "no descriptor"
        raise StateError(f"{name}: {problem}") from None
