"""Files of EPIC runs as a test wants them, on a disk or in memory."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from forge_actors.domain.epic import places
from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.namespace import Namespace, classify
from forge_actors.domain.epic.records import checked
from forge_actors.testing.epic.records import EXPECTED, made_binding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.epic.namespace import Classification
    from forge_actors.domain.epic.places import Place
    from forge_actors.domain.epic.ports import Locks
    from forge_actors.domain.epic.record_ports import Namespaces
    from forge_actors.domain.epic.records import Binding, Claim, EngineState
    from forge_actors.testing.epic.root import FaultyRoot

#: What may be in the place of a file; a world can plant each.
ODD = ("a link", "a dangling link", "a FIFO", "a hard link", "a socket", "a folder")


class World(Protocol):
    """The files of one repository."""

    namespaces: Namespaces
    locks: Locks
    #: What the namespaces write through.
    faults: FaultyRoot

    def put(self, place: Place, content: bytes) -> None:
        """Have a file be there, whoever wrote it."""

    def plant(self, place: Place, what: str) -> None:
        """Have something be there that is no file of its own."""

    def files(self) -> dict[Place, bytes]:
        """All regular files."""


@contextmanager
def refused() -> Iterator[None]:
    """What is done here is refused."""
    try:
        yield
    except StateError:
        return
    raise AssertionError("this was not refused")


def bound(world: World, issue: int = 12) -> Binding:
    """Have an issue be one of the EPIC."""
    binding = made_binding(issue)
    world.put(places.binding(issue), checked(binding))
    return binding


def claimed(world: World, claim: Claim) -> Claim:
    """Have a claim be there, whatever else is."""
    issue = claim.run_key.issue_number
    world.put(places.claim(issue, claim.generation), checked(claim))
    return claim


def saved(world: World, state: EngineState, issue: int = 12) -> EngineState:
    """Have a state be there."""
    world.put(places.state(issue), checked(state))
    return state


def read(world: World, issue: int = 12) -> Namespace:
    """What is kept of an issue; to read it changes nothing."""
    lock = world.locks.take_run(issue)
    before = world.files()
    namespace = world.namespaces.read(lock, issue)
    assert world.files() == before
    lock.close()
    assert world.namespaces.look(issue) == namespace
    return namespace


def found(world: World, issue: int = 12) -> Classification:
    return classify(read(world, issue), EXPECTED)
