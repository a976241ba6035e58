"""The pulse of the actors of one runtime: which of them have something to do.

A mailbox counts what it was sent; what was served is that without what still lies in
it. An actor that waits for its next message is idle, which is well. One that does not
wait, and has not served anything since the last look, is at the same message still.

Nobody looks while all are idle. The first message then wakes whoever looks.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import trio
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.actors.mailbox import Inbox, Mailbox

#: The actor without which nothing is started.
SUPERVISOR = "supervisor"


class Watched(Struct, frozen=True, eq=False):
    """An actor: its name, its task, and both ends of its mailbox."""

    name: str
    task: trio.lowlevel.Task
    mailbox: Mailbox[Any]
    inbox: Inbox[Any]

    @property
    def ended(self) -> bool:
        """It failed before it served anybody, so nothing closed its inbox."""
        return getattr(self.task.coro, "cr_frame", None) is None

    def beat(self) -> Beat:
        waiting, idle = self.inbox.load()
        return Beat(self.mailbox.sent - waiting, waiting, idle and not waiting)


class Beat(Struct, frozen=True):
    """What an actor was at, at one moment.

    `served` counts the messages it has taken, `waiting` those it has not.
    """

    served: int
    waiting: int
    idle: bool


class Pulse:
    """The actors of one runtime. Without somebody who looks, nobody is woken."""

    def __init__(self) -> None:
        self._watched: dict[Inbox[Any], Watched] = {}
        self._wake: Callable[[], None] = _nobody
        #: Whether the next message is to wake whoever looks.
        self.asleep = False

    @property
    def actors(self) -> list[Watched]:
        """Those that there are now, in the order in which they came."""
        return [each for each in self._watched.values() if not each.ended]

    def add(self, name: str, mailbox: Mailbox[Any], inbox: Inbox[Any]) -> None:
        """The task that calls this is the actor of that mailbox."""
        task = trio.lowlevel.current_task()
        self._watched[inbox] = Watched(name, task, mailbox, inbox)

    def drop(self, inbox: Inbox[Any]) -> None:
        """Its actor ends."""
        self._watched.pop(inbox, None)

    def sleep(self, wake: Callable[[], None]) -> None:
        """Call `wake` once, with the next message to anybody."""
        self._wake, self.asleep = wake, True
        for inbox in [key for key, each in self._watched.items() if each.ended]:
            del self._watched[inbox]

    def wake(self) -> None:
        """Somebody has something to do."""
        if self.asleep:
            self.asleep = False
            self._wake()


def _nobody() -> None:
    """Nobody looks."""


#: That of a runtime where nobody looks.
UNWATCHED = Pulse()
#: That of the runtime whose task this is; a task has it from the one that made it.
CURRENT: ContextVar[Pulse] = ContextVar("pulse", default=UNWATCHED)
