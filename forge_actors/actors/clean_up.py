"""The clean-up of a runtime, which can do without it: kept running, if there is one.

One that fails over and over is given up, which is told of and harms nobody else.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from forge_actors.actors import maintenance
from forge_actors.actors.keeper import Keeper
from forge_actors.actors.maintenance_messages import Message, Reconsider, Stop
from forge_actors.actors.supervisor_messages import CleanUpEnded
from forge_actors.domain.errors import MailboxClosed, Unavailable, WriterFenced

if TYPE_CHECKING:
    from forge_actors.actors import supervisor_messages
    from forge_actors.actors.mailbox import Mailbox, Reply
    from forge_actors.actors.supervisor_context import Context


class CleanUp:
    """`keep` is its task, where there is one; the rest is asked by the supervisor."""

    def __init__(self, context: Context) -> None:
        self._cleans = context.maintenance
        self._keeper: Keeper[Message] | None = None
        if self._cleans is not None:
            self._keeper = Keeper(
                "the clean-up",
                partial(maintenance.run, self._cleans),
                policy=context.restarts,
                ends_at=(WriterFenced,),  # the runtime ends, and says so itself
            )

    @property
    def ended(self) -> bool:
        """It does not run, and will not."""
        return self._keeper is None or self._keeper.over.is_set()

    @property
    def failures(self) -> int:
        return 0 if self._keeper is None else self._keeper.failures

    @property
    def given_up(self) -> str | None:
        """Why it is not started any more."""
        return None if self._keeper is None else self._keeper.given_up

    @property
    def depth(self) -> int:
        """How many messages it has not read yet."""
        mailbox = None if self._keeper is None else self._keeper.mailbox
        return 0 if mailbox is None else mailbox.depth

    def answer(self, reply: Reply[Keeper[Message]]) -> None:
        """Tell who can be asked to clean, or that nobody can."""
        if self._keeper is None or self.ended:
            why = f"was given up: {self.given_up}" if self.given_up else "does not run"
            reply.refuse(Unavailable(f"the clean-up of this runtime {why}"))
        else:
            reply.answer(self._keeper)

    def reconsider(self) -> None:
        """The settings are others."""
        if self._keeper is not None:
            self._keeper.tell(Reconsider())

    def stop(self) -> None:
        """Have it end, for good."""
        if self._keeper is not None:
            self._keeper.stop_by(Stop())

    async def keep(self, supervisor: Mailbox[supervisor_messages.Message]) -> None:
        """Run it until it is stopped or given up."""
        if self._keeper is None or self._cleans is None:
            return
        await self._keeper.run()
        if self.given_up is not None:
            self._cleans.tell(self.given_up)
        with suppress(MailboxClosed):
            supervisor.tell(CleanUpEnded())
