"""What a desk asks for: hands in the world, and a book that survives the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.held_starts import Message
    from forge_actors.edges.node.agent.tree import Mark

#: An attempt that runs, as the hands know it.
J = TypeVar("J")


class Hands(Protocol[J]):
    """What is done in the world when the desk says so."""

    def begin(self, key: Mark, message: Message) -> J:
        """Start an attempt.

        Raises:
            SpawnFailed, Malformed: it does not run, and nothing of it is left.
            NoRoom: the same, and a later try may go well.
        """

    def repeat_start(self, job: J) -> None:
        """Tell its start (again)."""

    def stop(self, job: J, grace: float | None, ending: str) -> None:
        """End it; without a grace its own holds. It is then told by `Desk.ended`."""

    def end(self, job: J) -> None:
        """End it because nobody wants any job any more, with little patience."""

    def suspend(self, job: J, *, pause: bool) -> None: ...

    def watch(self, job: J, known: int) -> None:
        """Tell once its output is longer than this, or at its end."""

    def identity(self, job: J) -> Message:
        """The fields of its `domain.launch.ProcessIdentity`."""

    def say(self, line: bytes) -> None:
        """Tell the service; nobody hears it where none is connected."""

    def now(self) -> float:
        """Seconds of the wall clock."""


class Book(Protocol):
    """Where it is written down what must survive the agent: the last line of each."""

    def append(self, key: Mark, line: bytes) -> None:
        """Write a line, in place of the one there was of this attempt.

        Raises:
            OSError: it is not written.
        """

    def forget(self, key: Mark) -> None:
        """Its line is needed no more."""

    def sync(self) -> None:
        """Make it survive a power cut."""
