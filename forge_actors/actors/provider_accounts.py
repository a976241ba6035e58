"""The accounts of providers, as the supervisor holds them: saved, told, and on time.

What is granted goes by them: nothing for a closed account, and one start at a time
where jobs return to one that has opened.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import trio

from forge_actors.actors.alarm import Alarm
from forge_actors.actors.repository_messages import AccountsChanged
from forge_actors.domain.accounts import Accounts
from forge_actors.domain.day_budgets import DAY, spent_budgets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from forge_actors.actors.repository_messages import Message
    from forge_actors.actors.supervisor_context import Context
    from forge_actors.actors.supervisor_messages import ProviderRefused
    from forge_actors.actors.tokens import Grant
    from forge_actors.domain.accounts import Account
    from forge_actors.domain.capacity import Capacity, Offer
    from forge_actors.domain.changes import Change
    from forge_actors.domain.day_budgets import SpentBudget


class ProviderAccounts:
    """Only the supervisor's task holds one. `run` is the task of its alarm.

    `tell` tells every repository that is awake.
    """

    def __init__(
        self,
        context: Context,
        capacity: Capacity,
        ring: Callable[[], None],
        tell: Callable[[Message], None],
    ) -> None:
        self._clock = context.clock
        self._save = context.store.save
        self._capacity = capacity
        self._tell = tell
        self._used_since = context.store.used_since
        #: The budgets that are spent.
        self.spent: tuple[SpentBudget, ...] = ()
        now = self._clock.now()
        self._accounts = Accounts(context.accounts, now)
        self._alarm = Alarm(ring, math.inf)
        self.run = self._alarm.run
        self.stop = self._alarm.stop
        self.look()

    @property
    def closed(self) -> tuple[Account, ...]:
        return self._accounts.closed

    def told(self) -> AccountsChanged:
        """What a repository is to know of them."""
        accounts = self._accounts
        return AccountsChanged(accounts.closed, accounts.tried, self.spent)

    # -- moves -----------------------------------------------------------------------

    def refused(self, message: ProviderRefused) -> None:
        """A job was refused."""
        now = self._clock.now()
        of = message.provider, message.job, message.refusal
        self._became(self._accounts.refused(*of, now))

    def open(self, scope: str) -> list[Change]:
        """Somebody says that the provider of this scope can be used again; what
        changes is to be saved by who asked."""
        now = self._clock.now()
        changes: list[Change] = []
        for account in self._accounts.closed:
            if account.token == scope:
                changes += self._accounts.opened(account.provider, now, "asked")
        if changes:
            self._news()
        return changes

    def look(self) -> None:
        """A moment may have come, or something was used."""
        changes, other = self._accounts.pass_time(self._clock.now())
        spent = self._spent()
        if spent != self.spent:
            self.spent, other = spent, True
        if changes:
            self._save(changes)
        if other:
            self._news()
        else:
            self.bar()

    def returned(self, grant: Grant) -> None:
        """A grant has come back."""
        changes = self._accounts.returned(
            grant.tokens, grant.id, self._clock.now(), used=grant.job is not None
        )
        if changes is None:
            return
        self._became(changes)
        self.bar()

    def granted(self, grant: Grant) -> None:
        """A grant was given."""
        now, gap = self._clock.now(), self._capacity.limits.return_gap
        if self._accounts.granted(grant.tokens, grant.id, now, gap):
            self.bar()

    # -- what may be granted ---------------------------------------------------------

    def settle(self, offers: Iterable[Offer]) -> None:
        """Forget that jobs return where none does any more; `offers` is what waits."""
        if self._accounts.returning:
            wanted = frozenset(token for offer in offers for token in offer.tokens)
            self._accounts.all_returned(wanted, self._clock.now())

    def bar(self) -> None:
        """Let the capacity grant what may be granted now, and look again in time."""
        now = self._clock.now()
        self._capacity.barred = self._accounts.closed_tokens(now)
        self._capacity.returning = self._accounts.returning
        due = self._accounts.next_moment(now)
        if self.spent:
            due = min(due or math.inf, self.spent[0].until)
        ahead = math.inf if due is None else max(0.0, due - now)
        self._alarm.set(trio.current_time() + ahead)

    def _spent(self) -> tuple[SpentBudget, ...]:
        """The budgets that are spent today, by what is saved."""
        budgets = self._capacity.limits.budgets
        if not budgets:
            return ()
        ahead = self._clock.ahead()
        wall = self._clock.now() + ahead
        day = wall - wall % DAY
        return spent_budgets(budgets, self._used_since(day), day - ahead)

    def _became(self, changes: list[Change]) -> None:
        if changes:
            self._save(changes)
            self._news()

    def _news(self) -> None:
        self.bar()
        self._tell(self.told())
