"""The attendant: keeps an actor running that the runtime can do without.

One that fails is started again from what was saved, as often as the policy allows; then
it is given up, which is told of and harms nobody else.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

import trio

from forge_actors.actors import maintenance, maintenance_messages
from forge_actors.actors.supervisor_messages import AttendantEnded
from forge_actors.domain.errors import MailboxClosed, Unavailable, WriterFenced
from forge_actors.domain.poison import cause, only
from forge_actors.domain.restarts import RestartHistory

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Protocol

    from forge_actors.actors.mailbox import Mailbox, Reply
    from forge_actors.actors.supervisor_context import Context
    from forge_actors.actors.supervisor_messages import Message
    from forge_actors.domain.restarts import RestartPolicy

    class Actor(Protocol):
        """An actor, as `nursery.start` would start it."""

        def __call__(self, *, task_status: Attendant[M]) -> Awaitable[None]: ...


log = logging.getLogger(__name__)

M = TypeVar("M")


class Attendant(Generic[M]):
    """That of one actor, which tells it once it has started."""

    def __init__(
        self,
        name: str,
        actor: Actor | None,
        policy: RestartPolicy,
        stop: M,
        gave_up: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._name = name
        self._actor = actor
        self._history = RestartHistory(policy)
        self._stop = stop
        self._gave_up = gave_up
        self._mailbox: Mailbox[M] | None = None
        self._stops = False
        #: How often it has failed.
        self.failures = 0
        #: Why it is not started any more.
        self.given_up: str | None = None
        #: It does not run, and will not. Without an actor it never did.
        self.ended = actor is None

    @property
    def depth(self) -> int:
        """How many messages the actor has not read yet."""
        return 0 if self._mailbox is None else self._mailbox.depth

    def answer(self, reply: Reply[Mailbox[M]]) -> None:
        """Tell the mailbox of the actor as it runs now, or that it does not."""
        if self._mailbox is None:
            why = f"was given up: {self.given_up}" if self.given_up else "does not run"
            reply.refuse(Unavailable(f"the {self._name} of this runtime {why}"))
        else:
            reply.answer(self._mailbox)

    def started(self, mailbox: Mailbox[M]) -> None:
        """The actor runs."""
        self._mailbox = mailbox
        if self._stops:
            mailbox.tell(self._stop)

    def tell(self, message: M) -> None:
        """Tell the actor, if it runs."""
        if self._mailbox is not None:
            try:
                self._mailbox.tell(message)
            except MailboxClosed:
                return  # it has just ended, and begins anew from what is saved

    def stop(self) -> None:
        """Have it end, for good."""
        self._stops = True
        self.tell(self._stop)

    @trio.lowlevel.enable_ki_protection
    async def keep(self, supervisor: Mailbox[Message]) -> None:
        """Run the actor until it is stopped or given up."""
        while self._actor is not None and not self._stops:
            try:
                await self._actor(task_status=self)
            except Exception as error:
                if only(error, WriterFenced):
                    break  # the runtime ends, and says so itself
                self.failures += 1
                log.exception("the %s failed", self._name)
                if not self._history.allow(trio.current_time()):
                    self.given_up = cause(error)
                    self._gave_up(self.given_up)
                    break
            finally:
                self._mailbox = None
        self.ended = True
        try:
            supervisor.tell(AttendantEnded())
        except MailboxClosed:
            return


def for_maintenance(context: Context) -> Attendant[maintenance_messages.Message]:
    """The attendant of the clean-up, if there is one."""
    cleans = context.maintenance
    actor = None if cleans is None else partial(maintenance.run, cleans)
    stop = maintenance_messages.Stop()
    gave_up = cleans.tell if cleans is not None else lambda _: None
    return Attendant("clean-up", actor, context.restarts, stop, gave_up)
