"""Starts that wait behind what runs: the next begins in the moment in which one ends.

The service orders them ahead of time, with the number of attempts that there is room
for. To ask it again after each end would leave a slot empty for as long as that takes,
which is longer than a short job runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.edges.node.agent.held_starts import HeldStarts

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.held_starts import Message
    from forge_actors.edges.node.agent.tree import Mark


class Behind(HeldStarts):
    """Those starts, in the order in which they are to begin."""

    def takes(self, key: Mark, message: Message, running: int) -> bool:
        """Keep it, if so many run that it has to wait, or others wait before it."""
        room = message.get("room")
        if room is None or (running < room and not self.messages):
            return False
        self.hold(key, message)
        return True

    def take_first(self, running: int) -> tuple[Mark, Message] | None:
        """The first of them, if there is room for it when so many run."""
        for key, message in self.messages.items():
            if running >= message["room"]:
                return None
            del self.messages[key], message["room"]
            return key, message
        return None
