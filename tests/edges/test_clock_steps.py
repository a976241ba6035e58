"""A wall clock that is set: stored moments follow it, a runtime's time does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import Struct

from forge_actors.domain import changes
from forge_actors.domain.clock_steps import MOMENTS, shifted, take_in
from forge_actors.edges.machine import LEAST_STEP, Clock
from forge_actors.edges.sqlite.store import open_store
from forge_actors.testing.clock import START, FakeClock
from forge_actors.testing.store_contract import dispatched, ended, job, ran, repository
from tests.edges.store_kit import path as path  # a fixture

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400.0


class Hands:
    """Two clocks that a test sets."""

    def __init__(self) -> None:
        self.wall, self.steady = START, 50.0


@pytest.mark.parametrize("step", [DAY, -DAY, 365 * DAY, LEAST_STEP])
def test_the_time_of_a_runtime_goes_on_whatever_the_wall_clock_does(
    step: float,
) -> None:
    hands = Hands()
    clock = Clock(lambda: hands.wall, lambda: hands.steady)
    assert (clock.now(), clock.ahead()) == (START, 0.0)
    hands.wall += step
    assert (clock.now(), clock.wall(), clock.ahead()) == (START, START + step, step)
    hands.wall, hands.steady = hands.wall + 10.0, hands.steady + 10.0
    assert (clock.now(), clock.ahead()) == (START + 10.0, step)


def test_the_drift_of_a_clock_is_no_step() -> None:
    hands = Hands()
    clock = Clock(lambda: hands.wall, lambda: hands.steady)
    hands.wall += LEAST_STEP * 0.99
    assert clock.ahead() == 0.0


def test_a_machine_that_slept_is_ahead_by_its_sleep() -> None:
    """The monotonic clock of Linux stands still meanwhile."""
    hands = Hands()
    clock = Clock(lambda: hands.wall, lambda: hands.steady)
    hands.wall += 8 * 3600.0
    assert (clock.now(), clock.ahead()) == (START, 8 * 3600.0)


@pytest.mark.mock_clock
@pytest.mark.parametrize("step", [DAY, -DAY])
async def test_what_is_stored_is_the_wall_clock_and_what_is_read_is_not(
    path: Path, step: float
) -> None:
    clock = FakeClock()
    now = clock.now()
    async with open_store(
        path, repository_workers=4, overtake_after=1800.0, clock=clock
    ) as store:
        await store.save([repository(), job("before", queued_at=now)]).wait()
        clock.set_wall(step)
        await store.save([job("after", queued_at=now + 1.0)]).wait()
        rows = store.read("job_state", "before")
        assert rows == [("queued",)]
        stored = store.reader.execute("SELECT id, queued_at FROM job ORDER BY id")
        assert dict(stored.fetchall()) == {"before": now, "after": now + 1.0 + step}
        event = store.events(0, 100)[-1]
        assert event.at == pytest.approx(job("x").event.at + step)
        loaded = {held.id: held.queued_at for held in store.load_jobs("repo")}
    assert loaded["after"] == min(now + 1.0, clock.now())
    assert loaded["before"] <= clock.now()


@pytest.mark.mock_clock
async def test_a_job_of_a_later_day_is_no_younger_than_now(path: Path) -> None:
    """The clock was set back between two runtimes."""
    clock = FakeClock()
    tomorrow = clock.now() + DAY
    async with open_store(
        path, repository_workers=4, overtake_after=1800.0, clock=clock
    ) as store:
        await store.save([repository(), job(queued_at=tomorrow)]).wait()
        [held] = store.load_jobs("repo")
    assert held.queued_at == clock.now()


@pytest.mark.parametrize("step", [DAY, -DAY, 0.0])
def test_a_retry_waits_as_long_as_it_was_to_and_no_longer(step: float) -> None:
    """The clock was set by `step` between two runtimes, 10 s after the requeue."""
    before = START
    now = before + 10.0 + step
    waits = job(queued_at=before).job
    waits.retry_at = before + 60.0
    take_in(waits, 0.0, now)
    assert waits.retry_at is not None
    assert waits.retry_at <= now + 60.0
    assert waits.retry_at == (before + 60.0 if step >= 0 else now + 60.0)
    assert waits.queued_at <= now


def test_every_moment_of_every_change_is_shifted() -> None:
    """A field that is a moment and that nobody listed would stay behind."""
    assert shifted(dispatched(), DAY).at == dispatched().at + DAY
    assert shifted(ran(), DAY).event.at == ran().event.at + DAY
    before, after = job(queued_at=5.0), shifted(job(queued_at=5.0), DAY)
    assert after.job.queued_at == 5.0 + DAY
    assert after.details.created_at == before.details.created_at + DAY
    assert shifted(repository(), DAY).repository.added_at == 1.0 + DAY
    end = shifted(ended(), DAY)
    assert end.at == ended().at + DAY
    assert end.receipt == ended().receipt


def test_no_change_has_a_moment_that_is_not_known() -> None:
    kinds = [
        kind
        for kind in vars(changes).values()
        if isinstance(kind, type) and issubclass(kind, Struct)
    ]
    named = {
        field
        for kind in kinds
        for field in kind.__struct_fields__
        if field.endswith("_at") or field in ("at", "since")
    }
    assert named <= MOMENTS
