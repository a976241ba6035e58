"""Budgets of a day, through the actors, until the next day begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.domain.agents import AgentReport, Budget, Usage
from forge_actors.domain.day_budgets import DAY, DayBudgets
from tests.actors.kit import World, limits, world

if TYPE_CHECKING:
    from forge_actors.domain.jobs import Job

pytestmark = pytest.mark.mock_clock

BUDGETS = DayBudgets(providers={"claude": Budget(tokens=100)})
TWO = limits(workers=8, agents=8, claude=2, codex=2)


def agent(made: World, name: str, provider: str = "claude") -> Job:
    return made.job(name, kind="agent-run", provider=provider, agent=provider)


async def use(made: World, job: str, tokens: int) -> None:
    """Let a running attempt end well, having used so much."""
    await trio.sleep(0.01)
    usage = Usage(tokens, 0, 0)
    told = AgentReport("claude", ok=True, text="done", usage=usage)
    await made.finish(job, exit_code=0, agent=told)
    await trio.testing.wait_all_tasks_blocked()


async def test_a_spent_budget_opens_with_the_next_day_and_holds_nobody_else() -> None:
    async with world(limits=structs.replace(TWO, budgets=BUDGETS)) as made:
        await made.submit(*(agent(made, name) for name in "abcd"))
        assert made.running == ["a", "b"]
        await use(made, "a", 99)
        assert made.running == ["b", "c"], "one token is left"
        await use(made, "b", 1)
        assert made.running == ["c"], "what runs goes on"
        await made.submit(agent(made, "x", "codex"))
        assert made.running == ["c", "x"]
        found = await made.explain("d")
        assert found is not None
        assert found.waiting is not None
        until = found.waiting.until
        assert until is not None
        assert until % DAY == pytest.approx(0.0)
        assert "the budget of claude for today is spent" in found.waiting.detail
        await use(made, "c", 1000)
        await trio.sleep(until - made.clock.now() - 1.0)
        assert "d" not in made.launched
        await trio.sleep(1.5)
        await trio.testing.wait_all_tasks_blocked()
        assert "d" in made.running
