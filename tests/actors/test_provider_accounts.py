"""The accounts of providers as the supervisor holds them: when they bar, and tell."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.actors.provider_accounts import ProviderAccounts
from forge_actors.actors.repository_messages import AccountsChanged
from forge_actors.actors.supervisor_messages import ProviderRefused
from forge_actors.actors.tokens import Grant
from forge_actors.domain.accounts import FIRST_TRY, RETURN_SECONDS, Account, Refusal
from forge_actors.domain.agents import Budget
from forge_actors.domain.capacity import Capacity, Offer
from forge_actors.domain.day_budgets import DAY, DayBudgets, DayUse
from forge_actors.testing.launcher import FakeLauncher
from forge_actors.testing.store import MemoryStore
from tests.actors.kit import World, limits

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from forge_actors.actors.repository_messages import Message
    from forge_actors.domain.changes import Change

pytestmark = pytest.mark.mock_clock

CLAUDE, CODEX = "provider:claude", "provider:codex"
OF_CLAUDE = ("workers", "agents", CLAUDE)
SPENT = DayUse("r1", "app", "claude", 0.0, 100)


class Case:
    """The accounts alone, what they save and tell, and how often they ring."""

    def __init__(self, *known: Account, budgets: DayBudgets | None = None) -> None:
        world = World(MemoryStore(), FakeLauncher())
        self.clock = world.clock
        self.saved: list[Change] = []
        self.told: list[Message] = []
        self.rung = 0
        self.uses: list[DayUse] = []
        self.since: list[float] = []
        allowed = structs.replace(limits(), budgets=budgets or DayBudgets())
        self.capacity = Capacity(structs.replace(allowed, return_gap=2.0))
        context = structs.replace(world._context(), store=self, accounts=known)
        self.accounts = ProviderAccounts(
            context, self.capacity, self._ring, self.told.append
        )

    def _ring(self) -> None:
        self.rung += 1

    def save(self, changes: list[Change]) -> None:
        self.saved += changes

    def used_since(self, since: float) -> list[DayUse]:
        self.since.append(since)
        return self.uses

    @property
    def events(self) -> list[tuple[str, object]]:
        found = [change.event for change in self.saved if change.event]
        return [(event.kind, event.data.get("reason")) for event in found]

    def refuse(self, retry_at: float | None = None, **changes: Any) -> None:
        refusal = Refusal("usage", "enough", retry_at)
        refusal = structs.replace(refusal, **changes)
        self.accounts.refused(ProviderRefused("claude", "j1", refusal))

    def grant(self, name: str = "g1", tokens: tuple[str, ...] = OF_CLAUDE) -> Grant:
        made = Grant(name, "repo", tokens, lambda _: None)
        self.accounts.granted(made)
        return made


@asynccontextmanager
async def opened(*known: Account, **how: Any) -> AsyncGenerator[Case, None]:
    """A case whose alarm runs; each time it rings, somebody looks."""
    case = Case(*known, **how)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(case.accounts.run)
        await trio.testing.wait_all_tasks_blocked()
        yield case
        case.accounts.stop()


async def test_a_refusal_is_saved_told_and_bars_its_provider() -> None:
    async with opened() as case:
        assert (case.saved, case.told) == ([], [])
        assert not case.accounts.closed
        due = case.clock.now() + 100.0
        case.refuse(due)
        assert case.events == [("provider_closed", "usage")]
        assert case.saved[0].event is not None
        assert case.saved[0].event.at == case.clock.now()
        [account] = case.accounts.closed
        assert (account.provider, account.job) == ("claude", "j1")
        assert account.retry_at == due
        assert case.told == [AccountsChanged((account,))]
        assert case.capacity.barred == {CLAUDE}
        assert case.capacity.returning == frozenset()
        # One that says nothing new is neither saved nor told.
        case.refuse()
        assert (len(case.saved), len(case.told)) == (1, 1)


async def test_it_rings_at_the_moment_and_opens_with_the_next_look() -> None:
    async with opened() as case:
        case.refuse(case.clock.now() + 100.0)
        await trio.sleep(99.5)
        case.accounts.look()
        assert case.accounts.closed
        assert len(case.told) == 1, "nothing is another one"
        assert case.rung == 0
        await trio.sleep(1.0)
        assert case.rung == 1
        case.accounts.look()
        assert case.events[1:] == [("provider_opened", "reset")]
        assert case.accounts.closed == ()
        assert case.told[1:] == [AccountsChanged(())]
        assert case.capacity.barred == frozenset()
        assert case.capacity.returning == {CLAUDE}


async def test_what_is_known_at_the_start_bars_at_once() -> None:
    async with trio.open_nursery():
        world = World(MemoryStore(), FakeLauncher())
        now = world.clock.now()
        first = Account("claude", False, now, "auth", "j1")
        late = Account("codex", False, now - 50.0, "usage", retry_at=now, stated=True)
        async with opened(first, late) as case:
            # The moment of one came while nobody looked.
            assert case.events == [("provider_opened", "reset")]
            assert case.accounts.closed == (first,)
            assert case.capacity.barred == {CLAUDE}
            assert case.accounts.told() == AccountsChanged((first,))


async def test_somebody_opens_what_waits_for_a_person_and_nothing_else() -> None:
    async with opened() as case:
        case.refuse(reason="auth")
        await trio.sleep(DAY)
        assert case.rung == 0, "it has no end of its own"
        assert case.accounts.open(CODEX) == []
        assert case.accounts.open("claude") == []
        assert len(case.told) == 1
        [change] = case.accounts.open(CLAUDE)
        assert change.event is not None
        assert change.event.kind == "provider_opened"
        assert change.event.at == case.clock.now()
        assert change.event.data == {"provider": "claude", "reason": "asked"}
        assert len(case.saved) == 1, "who asked saves it"
        assert case.told[-1] == AccountsChanged(())
        assert case.capacity.barred == frozenset()


async def test_one_grant_tries_and_its_job_opens_the_account() -> None:
    async with opened() as case:
        case.refuse()
        await trio.sleep(FIRST_TRY + 1.0)
        assert case.rung == 1
        case.accounts.look()
        assert case.accounts.told().tried == {CLAUDE}
        assert case.told[-1] == case.accounts.told()
        assert case.capacity.barred == frozenset(), "one may try"
        case.grant("g0", ("workers",))
        assert case.capacity.barred == frozenset()
        grant = case.grant()
        assert case.capacity.barred == {CLAUDE}, "one and no other"
        # It came back as it was: the next one tries.
        case.accounts.returned(grant)
        assert case.capacity.barred == frozenset()
        assert len(case.saved) == 1
        other, used = Grant("g9", "repo", OF_CLAUDE, lambda _: None), case.grant("g2")
        other.job = used.job = "j2"
        case.accounts.returned(other)
        assert case.capacity.barred == {CLAUDE}, "that is not who tries"
        case.accounts.returned(used)
        assert case.events[1:] == [("provider_opened", "tried")]
        assert case.saved[1].event is not None
        assert case.saved[1].event.at == case.clock.now()
        assert case.accounts.closed == ()
        assert case.told[-1] == AccountsChanged(())
        assert case.capacity.barred == frozenset()


async def test_jobs_return_one_by_one_while_some_wait() -> None:
    async with opened() as case:
        case.refuse(case.clock.now() + 10.0)
        await trio.sleep(10.5)
        case.accounts.look()
        case.grant()
        assert case.capacity.barred == {CLAUDE}
        rung = case.rung
        await trio.sleep(1.4)
        assert case.rung == rung
        await trio.sleep(1.2)
        assert case.rung == rung + 1, "the gap that the limits say"
        case.accounts.bar()
        assert case.capacity.barred == frozenset()
        await trio.sleep(RETURN_SECONDS)
        case.accounts.settle([Offer("repo", "j2", OF_CLAUDE, 2, 0.0)])
        case.accounts.bar()
        assert case.capacity.returning == {CLAUDE}
        case.accounts.settle([Offer("repo", "j3", ("workers",), 2, 0.0)])
        case.accounts.bar()
        assert case.capacity.returning == frozenset()


async def test_a_spent_budget_is_told_once_and_looked_at_when_the_day_ends() -> None:
    budgets = DayBudgets(providers={"claude": Budget(tokens=100)})
    async with opened(budgets=budgets) as case:
        day = case.clock.now() - case.clock.now() % DAY
        assert case.since == [day]
        assert (case.accounts.spent, case.told) == ((), [])
        case.uses = [SPENT]
        case.clock.set_wall(-3600.0)
        case.accounts.look()
        [spent] = case.accounts.spent
        assert case.since[-1] == day, "a day of the wall clock"
        assert (spent.since, spent.until) == (day + 3600.0, day + 3600.0 + DAY)
        assert case.told == [AccountsChanged((), spent=(spent,))]
        assert case.accounts.told() == case.told[0]
        case.accounts.look()
        assert len(case.told) == 1
        left = spent.until - case.clock.now()
        await trio.sleep(left - 1.0)
        assert case.rung == 0
        await trio.sleep(1.5)
        assert case.rung == 1
        case.uses = []
        case.accounts.look()
        assert case.since[-1] == day + DAY
        assert (case.accounts.spent, case.told[-1]) == ((), AccountsChanged(()))


async def test_the_sooner_of_a_budget_and_an_account_is_waited_for() -> None:
    budgets = DayBudgets(home=Budget(tokens=100))
    async with opened(budgets=budgets) as case:
        case.uses = [SPENT]
        case.refuse(case.clock.now() + 50.0)
        case.accounts.look()
        [spent] = case.accounts.spent
        assert case.told[-1] == AccountsChanged(case.accounts.closed, spent=(spent,))
        await trio.sleep(51.0)
        assert case.rung == 1
        case.accounts.look()
        assert case.accounts.closed == ()
        await trio.sleep(spent.until - case.clock.now() + 0.5)
        assert case.rung == 2


async def test_without_a_budget_nobody_is_asked_what_was_used() -> None:
    async with opened() as case:
        case.accounts.look()
        assert case.since == []
