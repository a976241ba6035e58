"""Records of EPIC runs on the files of the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors.testing.epic.locks import FakeLocks
from forge_actors.testing.epic.namespaces import MemoryNamespaces

if TYPE_CHECKING:
    from forge_actors.domain.epic.places import Place
    from forge_actors.testing.epic.worlds import World


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


@pytest.fixture
def world() -> World:
    return MemoryWorld()
