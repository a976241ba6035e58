"""The records of EPIC runs without a disk: the port `Namespaces` for tests.

    namespaces = MemoryNamespaces()
    namespaces.save(made_state(12))  # as a worker does
    namespaces.faults.fail_at(2)  # see `FaultyRoot`

It is the real edge on files of the memory, so that what it refuses and in which order
it writes are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.epic import places
from forge_actors.domain.epic.records import checked
from forge_actors.edges.epic.namespaces import FileNamespaces
from forge_actors.testing.epic.root import FaultyRoot, MemoryRoot

if TYPE_CHECKING:
    from forge_actors.domain.epic.places import Place
    from forge_actors.domain.epic.records import EngineState


class MemoryNamespaces(FileNamespaces):
    """The port `Namespaces` on files of the memory, which fail when they are told."""

    def __init__(self, files: MemoryRoot | None = None, folder: Place = ()) -> None:
        self.files = MemoryRoot() if files is None else files
        self.faults = FaultyRoot(self.files)
        super().__init__(self.faults, folder)

    def save(self, state: EngineState) -> None:
        """Have a worker save how far it is."""
        issue = state.run_key.issue_number
        self.files.write(self._at(places.state(issue)), checked(state))

    def again(self) -> MemoryNamespaces:
        """The same files after a crash, as the next run finds them."""
        return MemoryNamespaces(self.files, self._folder)
