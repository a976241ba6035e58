"""Sleep is held off while jobs run, and no longer than the grace after that."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked
from trio_util import AsyncBool, AsyncValue

from forge_actors.domain.errors import InvalidInput
from forge_actors.runtime.power import Power, PowerSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

GRACE = 60.0


class Machine:
    """Jobs that run or do not, and what was done about it."""

    def __init__(self) -> None:
        self.running = False
        self.happened = AsyncValue(0)
        self.held = AsyncBool(False)
        self.holds = 0
        self.looks = 0
        self.helper_ends = trio.Event()
        self.error: Exception | None = None

    def set(self, *, running: bool) -> None:
        self.running = running
        self.happened.value += 1

    def runs_jobs(self) -> bool:
        self.looks += 1
        return self.running

    async def news(self) -> bool:
        await self.happened.wait_transition()
        return True

    @asynccontextmanager
    async def holding(self, command: list[str]) -> AsyncIterator[Machine]:
        assert command == ["inhibit"]
        if self.error is not None:
            raise self.error
        self.holds += 1
        self.held.value = True
        try:
            yield self
        finally:
            self.held.value = False

    async def wait(self) -> int:
        await self.helper_ends.wait()
        return 1

    def power(self, **settings: Any) -> Power:
        chosen = PowerSettings(**{"idle_grace": GRACE, **settings})
        return Power(chosen, self, lambda: ["inhibit"], self.holding)


@asynccontextmanager
async def powered(**settings: Any) -> AsyncIterator[Machine]:
    machine = Machine()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(machine.power(**settings).run)
        await wait_all_tasks_blocked()
        yield machine
        nursery.cancel_scope.cancel()


@pytest.mark.mock_clock
async def test_it_is_held_while_jobs_run_and_through_the_grace() -> None:
    async with powered() as machine:
        await trio.sleep(3600)
        assert not machine.held.value
        machine.set(running=True)
        await machine.held.wait_value(True)
        await trio.sleep(10 * GRACE)
        assert machine.held.value
        machine.set(running=False)
        await trio.sleep(GRACE)
        assert machine.held.value, "another job may come"
        await trio.sleep(2 * GRACE)
        assert not machine.held.value
        machine.set(running=True)
        await machine.held.wait_value(True)
        assert machine.holds == 2


@pytest.mark.mock_clock
async def test_a_job_in_the_grace_goes_on_holding_it() -> None:
    async with powered() as machine:
        machine.set(running=True)
        for _ in range(20):
            await trio.sleep(GRACE * 0.8)
            machine.set(running=False)
            await trio.sleep(GRACE * 0.8)
            machine.set(running=True)
        assert machine.holds == 1
        assert machine.held.value


@pytest.mark.mock_clock
async def test_nobody_looks_while_nothing_runs() -> None:
    async with powered() as machine:
        machine.set(running=True)
        machine.set(running=False)
        await trio.sleep(3600)
        before = machine.looks
        await trio.sleep(24 * 3600)
        assert machine.looks == before


@pytest.mark.mock_clock
async def test_a_helper_that_ends_by_itself_is_tried_again_for_later_jobs() -> None:
    async with powered() as machine:
        machine.set(running=True)
        await machine.held.wait_value(True)
        machine.helper_ends.set()
        await trio.sleep(10 * GRACE)
        assert machine.holds == 1
        machine.set(running=False)
        await trio.sleep(3 * GRACE)
        machine.set(running=True)
        await wait_all_tasks_blocked()
        assert machine.holds == 2


@pytest.mark.mock_clock
@pytest.mark.parametrize("error", [FileNotFoundError("inhibit"), RuntimeError("odd")])
async def test_what_cannot_be_held_off_harms_nobody(error: Exception) -> None:
    machine = Machine()
    machine.error = error
    machine.running = True
    await machine.power().run()
    assert machine.holds == 0


async def test_nothing_is_held_off_where_nobody_wants_that() -> None:
    machine = Machine()
    machine.running = True
    await machine.power(hold=False).run()
    assert machine.looks == 0


@pytest.mark.parametrize("grace", ["4s", "31m"])
def test_a_grace_out_of_bounds_is_refused(grace: str) -> None:
    with pytest.raises(InvalidInput, match=r"power\.idle_grace"):
        _ = PowerSettings(idle_grace=grace).grace
