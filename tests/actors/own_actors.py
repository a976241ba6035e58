"""An actor of a user's, as tests of what keeps it need one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import trio

from forge_actors.kit import Inbox, Mailbox, Reply, open_mailbox, serving

if TYPE_CHECKING:
    from forge_actors.kit import Keeper


class Bug(Exception):
    pass


@dataclass(frozen=True)
class Add:
    number: int
    reply: Reply[int]


@dataclass(frozen=True)
class Park:
    """Is taken and never answered."""

    reply: Reply[int]


@dataclass(frozen=True)
class Note:
    text: str


Message = Add | Park | Note


class Adder:
    """Adds up what it is asked to; each life of it begins with what was saved."""

    def __init__(self) -> None:
        self.saved = 0
        self.lives = 0
        #: What becomes of these lives before they have started.
        self.stillborn: set[int] = set()
        #: Waited for by each life once its mailbox is closed, and in between.
        self.last_rites = trio.Event()
        self.last_rites.set()
        self.order: list[str] = []
        self.name = "adder"

    async def run(self, *, task_status: trio.TaskStatus[Mailbox[Message]]) -> None:
        self.lives += 1
        if self.lives in self.stillborn:
            raise Bug("it cannot be loaded")
        mailbox: Mailbox[Message]
        inbox: Inbox[Message]
        mailbox, inbox = open_mailbox()
        parked: list[Reply[int]] = []
        try:
            with serving(inbox):
                task_status.started(mailbox)
                async for message in inbox:
                    match message:
                        case Add(number, reply):
                            with reply:
                                if number < 0:
                                    raise Bug(f"not {number}")
                                self.saved += number
                                reply.answer(self.saved)
                        case Park(reply):
                            parked.append(reply)
                        case Note("end"):
                            return
                        case Note("hold"):
                            await self.last_rites.wait()
                        case Note():
                            raise Bug("a note")
        finally:
            self.order.append(self.name)
            await self.last_rites.wait()


async def add(keeper: Keeper[Message], number: int) -> int:
    return await keeper.ask(partial(Add, number))


class Steps(trio.abc.Instrument):
    """Counts what the loop does."""

    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1
