"""Starts that the system had no room for: too many files or processes, no memory.

The job is not to blame, so it does not fail. It starts when another job of ours has
ended, which gives back what it had; only where none runs there is nothing to wait for.
"""

from __future__ import annotations

import errno
from time import time
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
        self._messages: dict[Mark, Message] = {}

    def __bool__(self) -> bool:
        return bool(self._messages)

    def __iter__(self) -> Iterator[Mark]:
        """All as they are now: they may be stopped meanwhile."""
        return iter(list(self._messages))

    def __contains__(self, key: Mark) -> bool:
        return key in self._messages

    def hold(self, key: Mark, message: Message) -> None:
        self._messages[key] = message

    def suspend(self, key: Mark, *, pause: bool) -> None:
        """It is to stand still when it has started, or no longer."""
        if key in self._messages:
            self._messages[key]["paused"] = pause

    def take(self) -> dict[Mark, Message]:
        """All of them, to be tried again."""
        taken, self._messages = self._messages, {}
        return taken

    def stop(self, key: Mark) -> Message | None:
        """The receipt of one that is not to start any more; None if it is not here."""
        message = self._messages.pop(key, None)
        if message is None:
            return None
        return never_ran(key, message, "stop", "it was stopped before it started")


def never_ran(key: Mark, message: Message, ending: str, error: str) -> Message:
    """The receipt of an attempt of which no process ever was."""
    return {
        "job": key[0],
        "attempt": key[1],
        "fence": message.get("fence", 0),
        "ending": ending,
        "ended_at": time(),
        "error": error,
    }
