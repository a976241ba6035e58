"""The records of a run, each form of one decoded once: strictness costs most of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from forge_actors.domain.epic.records import MAX_RECORD
from forge_actors.edges.epic.namespaces import FileNamespaces

if TYPE_CHECKING:
    from forge_actors.domain.epic.places import Place
    from forge_actors.domain.epic.ports import Root
    from forge_actors.domain.epic.records import R, Record

Memory = dict[tuple[type["Record"], bytes], "Record"]


class Records(FileNamespaces):
    """The real port `Namespaces`, which remembers what it has decoded."""

    def __init__(self, root: Root, memory: Memory) -> None:
        super().__init__(root)
        self._memory = memory

    def _record(self, kind: type[R], place: Place) -> R | None:
        data = self._root.read(place, MAX_RECORD)
        if data is None:
            return None
        found = self._memory.get((kind, data))
        if found is None:
            found = super()._record(kind, place)
            assert found is not None
            self._memory[kind, data] = found
        return cast("R", found)
