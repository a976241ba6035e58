"""Starts that the system had no room for: too many files or processes, no memory.

The job is not to blame, so it does not fail. It starts when another job of ours has
ended, which gives back what it had; only where none runs there is nothing to wait for.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.edges.node.agent.tree import Mark

    Message = dict[str, Any]

#: What a call fails with when the system has no room.
NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM})


class HeldStarts:
    """The messages of starts that are held back, the oldest first."""

    def __init__(self) -> None:
        self.messages: dict[Mark, Message] = {}

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[Mark]:
        """All as they are now: they may be stopped meanwhile."""
        return iter(list(self.messages))

    def hold(self, key: Mark, message: Message) -> None:
        self.messages[key] = message

    def suspend(self, key: Mark, *, pause: bool) -> None:
        """It is to stand still when it has started, or no longer."""
        if key in self.messages:
            self.messages[key]["paused"] = pause

    def take(self) -> dict[Mark, Message]:
        """All of them, to be tried again."""
        taken, self.messages = self.messages, {}
        return taken

    def drop(self, key: Mark) -> bool:
        """It is not to start any more; False if it is not here."""
        return self.messages.pop(key, None) is not None
