"""Actors of your own, with the guarantees that ours have (`design/actor-kit.md`).

An actor is an async function that opens a mailbox, says that it has started, and serves
its messages one at a time. It alone owns its state, so nothing is locked.

    class Add(Struct, frozen=True):
        number: int
        reply: Reply[int]

    async def add_up(*, task_status: TaskStatus[Mailbox[Add]]) -> None:
        mailbox: Mailbox[Add]
        inbox: Inbox[Add]
        mailbox, inbox = open_mailbox()
        total = 0
        with serving(inbox):
            task_status.started(mailbox)
            async for message in inbox:
                with message.reply as reply:
                    total += message.number
                    reply.answer(total)

    async with open_supervisor() as supervisor:
        adder = await supervisor.start(add_up, name="the adder")
        assert await adder.ask(lambda reply: Add(3, reply)) == 3
"""

from __future__ import annotations

from forge_actors.actors.keeper import Actor, Keeper
from forge_actors.actors.mailbox import (
    MAILBOX_SIZE,
    Inbox,
    Mailbox,
    Reply,
    ask_together,
    open_mailbox,
    serving,
)
from forge_actors.actors.supervising import Supervisor, open_supervisor
from forge_actors.domain.errors import (
    ActorStopped,
    MailboxClosed,
    RestartIntensityReached,
)
from forge_actors.domain.restarts import Restart, RestartPolicy

__all__ = [
    "MAILBOX_SIZE",
    "Actor",
    "ActorStopped",
    "Inbox",
    "Keeper",
    "Mailbox",
    "MailboxClosed",
    "Reply",
    "Restart",
    "RestartIntensityReached",
    "RestartPolicy",
    "Supervisor",
    "ask_together",
    "open_mailbox",
    "open_supervisor",
    "serving",
]
