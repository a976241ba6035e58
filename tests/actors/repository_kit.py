"""What the tests of repository share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.testing.store import MemoryStore
from tests.actors.kit import World

if TYPE_CHECKING:
    pass


def memory(made: World) -> MemoryStore:
    assert isinstance(made.store, MemoryStore)
    return made.store
