"""Records of EPIC runs on a real disk, and on the files of the memory."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from forge_actors.edges.epic.namespaces import FileNamespaces
from forge_actors.edges.epic.root import FolderRoot
from forge_actors.testing.epic.locks import FakeLocks
from forge_actors.testing.epic.namespaces import MemoryNamespaces
from forge_actors.testing.epic.root import FaultyRoot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forge_actors.domain.epic.places import Place
    from forge_actors.testing.epic.worlds import World


class DiskWorld:
    """A folder on the disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "common"
        self.folder.mkdir()
        self.aside = folder / "aside"
        self.aside.write_bytes(b"{}")
        self.root = FolderRoot(str(self.folder))
        self.faults = FaultyRoot(self.root)
        self.namespaces = FileNamespaces(self.faults)
        self.locks = FakeLocks()

    def path(self, place: Place) -> Path:
        path = self.folder.joinpath(*place)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def put(self, place: Place, content: bytes) -> None:
        self.path(place).write_bytes(content)

    def plant(self, place: Place, what: str) -> None:
        path = self.path(place)
        path.unlink(missing_ok=True)
        match what:
            case "a link":
                path.symlink_to(self.aside)
            case "a dangling link":
                path.symlink_to(self.aside / "nowhere")
            case "a hard link":
                os.link(self.aside, path)
            case "a FIFO":
                os.mkfifo(path)
            case "a folder":
                path.mkdir()
            case "a socket":
                self._bind(path)
            case _:
                raise ValueError(what)

    def _bind(self, path: Path) -> None:
        # The path of a socket may be no longer than some hundred bytes.
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(f"/proc/self/fd/{folder}/{path.name}")
        os.close(folder)

    def files(self) -> dict[Place, bytes]:
        assert self.aside.read_bytes() == b"{}"  # where every link leads
        found = (each for each in self.folder.rglob("*") if not each.is_symlink())
        return {
            each.relative_to(self.folder).parts: each.read_bytes()
            for each in found
            if each.is_file()
        }


class MemoryWorld:
    """The files of the memory."""

    def __init__(self) -> None:
        self.namespaces = MemoryNamespaces()
        self.faults = self.namespaces.faults
        self.locks = FakeLocks()

    def put(self, place: Place, content: bytes) -> None:
        self.namespaces.files.write(place, content)

    def plant(self, place: Place, what: str) -> None:
        files = self.namespaces.files
        if what == "a folder":
            files.files.pop(place, None)
            files.write((*place, "within"), b"")
            files.remove((*place, "within"))
        else:
            files.plant(place, what)

    def files(self) -> dict[Place, bytes]:
        return dict(self.namespaces.files.files)


@pytest.fixture(params=["disk", "memory"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param == "memory":
        yield MemoryWorld()
        return
    world = DiskWorld(tmp_path)
    yield world
    world.root.close()
