"""When the service is told what there is to tell: at the end of a turn, or a bit later.

While many starts wait here, nothing waits for the service, which has less to do for
each end if it hears of several at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.edges.node.agent.loop import NEVER

if TYPE_CHECKING:
    from collections.abc import Sized

#: More starts than this wait for an end when there is no hurry.
FEW = 6
#: Longest time, in seconds, that what happened is kept for then.
PATIENCE = 0.004


class Telling:
    """Whether there are news, and since when."""

    def __init__(self, behind: Sized) -> None:
        """`behind` are the starts that wait."""
        self._behind = behind
        self._news = False
        #: When what is kept is to be told, in monotonic seconds.
        self.due = NEVER

    def add(self) -> None:
        """There is something to tell."""
        self._news = True

    def is_time(self, now: float) -> bool:
        """It is to be told at the end of this turn, all of it."""
        if not self._news:
            return False
        if len(self._behind) > FEW:
            self.due = min(self.due, now + PATIENCE)
            if now < self.due:
                return False
        self._news = False
        self.due = NEVER
        return True
