"""Closings: where the supervisor grants nothing: pauses, accounts, the policy."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from forge_actors.actors.policies import Policies
from forge_actors.actors.provider_accounts import ProviderAccounts
from forge_actors.actors.repository_messages import PausesChanged
from forge_actors.actors.supervisor_messages import (
    ClosingsDue,
    ProviderRefused,
    SetPause,
)
from forge_actors.domain.errors import MailboxClosed
from forge_actors.domain.pauses import Pauses
from forge_actors.domain.scopes import provider_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import trio

    from forge_actors.actors.repository_messages import Message
    from forge_actors.actors.supervisor_context import Context
    from forge_actors.actors.supervisor_messages import SetPolicy
    from forge_actors.actors.tokens import Grants
    from forge_actors.domain.accounts import Refusal
    from forge_actors.domain.capacity import Limits
    from forge_actors.domain.jobs import Job


class Closings:
    """Only the supervisor's task holds one. `tell` tells every repository."""

    def __init__(
        self,
        context: Context,
        grants: Grants,
        notice: Callable[[ClosingsDue | ProviderRefused], None],
        tell: Callable[[Message], None],
    ) -> None:
        self._clock, self._store = context.clock, context.store
        self._grants = grants
        self._tell = tell
        self.pauses = Pauses(context.pauses)
        self._notice = notice
        ring = partial(notice, ClosingsDue())
        self.policies = Policies(context, ring, tell)
        self.accounts = ProviderAccounts(context, grants.capacity, ring, tell)
        self._close()

    @contextmanager
    def keeping_time(self, nursery: trio.Nursery) -> Iterator[None]:
        """While the block lasts, their moments come."""
        nursery.start_soon(self.accounts.run)
        nursery.start_soon(self.policies.run)
        try:
            yield
        finally:
            self.accounts.stop()
            self.policies.stop()

    def look(self) -> None:
        """A moment may have come, or something was used."""
        self.accounts.look()
        if self.policies.look():
            self._close()

    def used(self) -> None:
        """An agent has used something, which will be saved when we look."""
        if self._grants.capacity.limits.budgets:
            self._tell_us(ClosingsDue())

    def tell_of_refusal(self, job: Job, refusal: Refusal) -> None:
        """A job was refused, says the actor of its repository."""
        provider = provider_in(job.tokens)
        if provider is not None and refusal.delay is None:
            self._tell_us(ProviderRefused(provider, job.id, refusal))

    def _tell_us(self, message: ClosingsDue | ProviderRefused) -> None:
        # A child may act once more after we have failed or were killed.
        with suppress(MailboxClosed):
            self._notice(message)

    def set_limits(self, limits: Limits) -> None:
        """Count by other limits from now on, and see which budgets are spent."""
        self._grants.capacity.set_limits(limits)
        self.accounts.look()

    def _close(self) -> None:
        """Grant nothing where there is a pause."""
        #: Nothing is granted at all.
        self.halted = self.pauses.everywhere is not None or self.policies.halts
        self._grants.capacity.closed = self.pauses.closed_tokens

    def set(self, asked: SetPause | SetPolicy) -> None:
        """Do what somebody asks for."""
        if isinstance(asked, SetPause):
            self._set_pause(asked)
        elif self.policies.set(asked):
            self._close()
            # What is granted, and not used yet, may be for what is to wait.
            self._grants.withdraw(lambda _: True)

    def _set_pause(self, asked: SetPause) -> None:
        """Begin or end a pause; the end of that of a provider opens its account."""
        scope, jobs = asked.scope, asked.jobs
        now = self._clock.now()
        move = self.pauses.begin if asked.on else self.pauses.end
        changes = move(scope, now, jobs=jobs)
        if not asked.on:
            changes += self.accounts.open(scope)
        self._close()
        self._grants.withdraw(lambda tokens: self.pauses.covering(tokens) is not None)
        let_go = scope if jobs and not asked.on else None
        self._tell(PausesChanged(tuple(self.pauses), let_go))
        reply = asked.reply
        if changes:
            self._store.save(changes, then=lambda: reply.answer(None))
        else:
            reply.answer(None)

    def refused(self, message: ProviderRefused) -> None:
        """A provider has refused a job: nobody else of it is to start either."""
        self.accounts.refused(message)
        barred = self._grants.capacity.barred
        self._grants.withdraw(lambda tokens: not barred.isdisjoint(tokens))
