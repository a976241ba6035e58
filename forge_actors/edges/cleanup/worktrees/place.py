"""Where the folder of a worktree is: found without following a link."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from forge_actors.edges.cleanup.folders import Entry, Folder, Identity, Unsafe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.removal import Place, Receipt

#: Behind the name of a folder that is about to be removed.
BEHIND = ".removing"


class Spot:
    """The folder around a worktree, and the names that the worktree may have in it."""

    def __init__(self, parent: Folder | None, path: str) -> None:
        #: None: there is no such folder.
        self._parent = parent
        #: What the worktree is known by to git.
        self.path = path
        self.name = os.path.basename(path)
        self.aside_name = f"{self.name}{BEHIND}"

    @property
    def parent(self) -> Folder:
        assert self._parent is not None, "nothing is there"
        return self._parent

    def entry(self, name: str) -> Entry | None:
        return None if self._parent is None else self._parent.entry(name)

    def find(self, receipt: Receipt | None) -> Place:
        """Where it is now.

        Raises:
            Unsafe: something lies there that it cannot be.
        """
        whole, aside = self.entry(self.name), self.entry(self.aside_name)
        if whole is not None and not (whole.is_folder or is_link(whole)):
            raise Unsafe(self.path, "it is no folder")
        if aside is not None:
            meant = receipt is not None and aside.identity == Identity(
                receipt.device, receipt.inode
            )
            if not meant:
                raise Unsafe(f"{self.path}{BEHIND}", "no clean-up has put it there")
            if whole is not None:
                raise Unsafe(self.path, "something else was put in its place")
            return "aside"
        # A link is no worktree, wherever it leads.
        return "gone" if whole is None or is_link(whole) else "whole"

    @contextmanager
    def opened(self, name: str) -> Iterator[Folder]:
        """
        Raises:
            Unsafe: it is a link, or a mount, or is gone.
        """
        folder = self.parent.folder(name)
        if folder is None:
            raise Unsafe(os.path.join(self.parent.path, name), "it is gone")
        with folder:
            yield folder

    def put_aside(self) -> None:
        self._rename(self.name, self.aside_name)

    def put_back(self) -> None:
        self._rename(self.aside_name, self.name)

    def _rename(self, name: str, to: str) -> None:
        parent = self.parent
        if parent.entry(to) is not None:
            raise Unsafe(os.path.join(parent.path, to), "it is there already")
        os.rename(name, to, src_dir_fd=parent.fd, dst_dir_fd=parent.fd)
        os.fsync(parent.fd)


@contextmanager
def spot_of(home: Folder, path: str) -> Iterator[Spot]:
    """The spot of a worktree, by its path below the home.

    Raises:
        Unsafe: a folder around it is a link, or a mount.
    """
    parts = path.split("/")
    if os.path.isabs(path) or not all(
        part and part not in (".", "..") for part in parts
    ):
        raise Unsafe(path, "it is not in the home")
    with ExitStack() as opened:
        folder: Folder | None = home
        for part in parts[:-1]:
            folder = folder.folder(part) if folder is not None else None
            if folder is not None:
                opened.enter_context(folder)
        yield Spot(folder, os.path.join(home.path, path))


def is_link(entry: Entry) -> bool:
    return (
        not entry.is_folder and not entry.is_file and entry.mode & 0o170000 == 0o120000
    )
