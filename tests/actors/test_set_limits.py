"""Limits that are exchanged while jobs run: the supervisor, and the actors it tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio.testing
from msgspec import structs

from forge_actors.actors import supervisor
from forge_actors.domain.capacity import RepositoryLimits
from tests.actors.kit import limits, world

if TYPE_CHECKING:
    from pathlib import Path

    from tests.actors.kit import World

pytestmark = pytest.mark.mock_clock


async def exchange(
    made: World,
    workers: int = 4,
    *,
    repository_workers: int = 100,
    overtake_after: float = 1800.0,
    pressure_workers: int = 1,
    **counts: Any,
) -> None:
    """What a reload does, and everything that follows from it."""
    whole = structs.replace(
        limits(workers, **counts),
        overtake_after=overtake_after,
        pressure_workers=pressure_workers,
    )
    known = frozenset(whole.tokens)
    each = RepositoryLimits(repository_workers, overtake_after, known)
    made.store.limits = each  # type: ignore[union-attr]
    made.mailbox.tell(supervisor.SetLimits(whole, each))
    await trio.testing.wait_all_tasks_blocked()


async def test_a_lower_limit_touches_nothing_that_runs(tmp_path: Path) -> None:
    async with world(tmp_path, limits=limits(workers=3)) as made:
        await made.submit(*(made.job(f"j{n}") for n in range(6)))
        assert sorted(made.running) == ["j0", "j1", "j2"]
        await exchange(made, workers=1)
        assert sorted(made.running) == ["j0", "j1", "j2"]
        assert (await made.survey()).tokens["workers"].used == 3
        await made.finish("j0")
        await made.finish("j1")
        assert sorted(made.running) == ["j2"]
        await made.finish("j2")
        assert sorted(made.running) == ["j3"]
        assert made.launcher.stops == []


async def test_a_higher_limit_starts_more_at_once(tmp_path: Path) -> None:
    async with world(tmp_path, limits=limits(workers=1)) as made:
        await made.submit(*(made.job(f"j{n}") for n in range(4)))
        assert sorted(made.running) == ["j0"]
        await exchange(made, workers=3)
        assert sorted(made.running) == ["j0", "j1", "j2"]


async def test_fewer_active_repositories_let_those_that_run_end(tmp_path: Path) -> None:
    async with world(tmp_path, repos=("a", "b"), limits=limits(workers=4)) as made:
        await made.submit(made.job("a1", "a"), made.job("b1", "b"))
        await exchange(made, repositories=1)
        await made.submit(made.job("a2", "a"), made.job("b2", "b"))
        assert sorted(made.running) == ["a1", "b1"]
        await made.finish("b1")
        assert sorted(made.running) == ["a1", "a2"]
        await made.finish("a1")
        await made.finish("a2")
        assert sorted(made.running) == ["b2"]


async def test_the_workers_of_a_repository_change_where_it_is_awake_and_asleep(
    tmp_path: Path,
) -> None:
    async with world(
        tmp_path, repos=("awake", "asleep"), limits=limits(workers=8)
    ) as made:
        await made.submit(*(made.job(f"j{n}", "awake") for n in range(4)))
        assert len(made.running) == 4
        await exchange(made, workers=8, repository_workers=2)
        await made.finish("j0")
        await made.finish("j1")
        await made.submit(made.job("j4", "awake"))
        assert sorted(made.running) == ["j2", "j3"]
        await made.submit(*(made.job(f"k{n}", "asleep") for n in range(4)))
        assert sorted(made.running) == ["j2", "j3", "k0", "k1"]


async def test_a_provider_that_is_gone_stops_only_what_waits_for_it(
    tmp_path: Path,
) -> None:
    """C-05 and Q-09."""
    counts = limits(workers=4, local=1)
    async with world(tmp_path, repos=("a", "b"), limits=counts) as made:
        await made.submit(made.job("runs", "a", provider="local"))
        await made.submit(made.job("stuck", "a", provider="local"))
        await exchange(made)
        assert sorted(made.running) == ["runs"]
        survey = await made.survey()
        assert survey.tokens["provider:local"].limit == 0
        waits = await made.explain("stuck", "a")
        assert waits is not None
        assert waits.waiting is not None
        assert waits.waiting.kind == "policy"
        await made.submit(made.job("other", "a"), made.job("b1", "b"))
        assert sorted(made.running) == ["b1", "other", "runs"]
        await made.finish("runs")
        assert "provider:local" not in (await made.survey()).tokens
        assert sorted(made.running) == ["b1", "other"]
        await exchange(made, local=1)
        assert sorted(made.running) == ["b1", "other", "stuck"]


async def test_another_limit_of_the_pressure_counts_at_once(tmp_path: Path) -> None:
    async with world(tmp_path, limits=limits(workers=4), pressure="full") as made:
        await made.submit(*(made.job(f"j{n}") for n in range(3)))
        assert sorted(made.running) == ["j0"]
        await exchange(made, pressure_workers=2)
        assert sorted(made.running) == ["j0", "j1"]
        made.pressure = None
        await exchange(made)
        assert sorted(made.running) == ["j0", "j1", "j2"]


async def test_who_is_overtaken_too_long_follows_the_setting(tmp_path: Path) -> None:
    counts = limits(workers=4, local=1)
    async with world(tmp_path, repos=("a", "b", "c"), limits=counts) as made:
        await made.submit(made.job("holder", "a", provider="local"))
        await made.submit(made.job("old", "b", kind="check", provider="local"))
        await made.submit(made.job("check", "c", kind="check"))
        made.clock.shift(60.0)
        await exchange(made, overtake_after=30.0, local=1, heavy=2)
        # Its provider and the last of the scarce other kinds are kept for `old`.
        await made.submit(made.job("check2", "c", kind="check", priority=2))
        assert sorted(made.running) == ["check", "holder"]
        await exchange(made, overtake_after=1800.0, local=1, heavy=2)
        assert sorted(made.running) == ["check", "check2", "holder"]
