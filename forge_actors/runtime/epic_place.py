"""Which repository an EPIC run works in, by any folder of any of its work trees."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.epic.errors import LockFailed, StateError
from forge_actors.domain.epic.places import CONTROLLER
from forge_actors.domain.errors import InvalidInput
from forge_actors.edges.epic.locks import FileLocks
from forge_actors.edges.epic.root import FolderRoot
from forge_actors.edges.git.checkout import GitProgram
from forge_actors.edges.machine import lives, own_identity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.epic.places import Place


class ControllerPlace(Struct, frozen=True):
    """Where the lock of a repository's controller is, and all files of its EPIC runs.

    Every folder, link and linked work tree of a repository leads to the same one.
    """

    #: Top folder of the work tree that was named.
    checkout: str
    #: The git common directory.
    common_dir: str
    device: int
    inode: int

    @property
    def lock_path(self) -> str:
        """The record of the controller."""
        return os.path.join(self.common_dir, *CONTROLLER)


async def controller_place(path: str) -> ControllerPlace:
    """
    Raises:
        LockFailed: the folder is in no work tree of a repository.
        Unavailable: git is not there, or hangs.
    """
    try:
        found = await GitProgram().checkout(path)
    except InvalidInput as error:
        raise LockFailed(f"no EPIC run can be here: {error.problem}") from None
    return ControllerPlace(found.root, found.common_dir, found.device, found.inode)


@contextmanager
def opened(place: ControllerPlace) -> Iterator[FolderRoot]:
    """The files of the repository that was found, and no other in its place.

    Raises:
        StateError: it is not there any more, or cannot be opened.
    """
    root = FolderRoot(place.common_dir)
    try:
        if root.identity() != (place.device, place.inode):
            raise StateError(f"{place.common_dir!a} is another folder by now")
        yield root
    finally:
        root.close()


def locks(root: FolderRoot, folder: Place = ()) -> FileLocks:
    """The locks of the repository, for this process; `folder`: of a plan."""
    return FileLocks(root, own_identity(), lives, folder=folder)
