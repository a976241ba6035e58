"""Candidates through the actors: admitted when they have tokens, or called off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.domain.errors import Refused
from forge_actors.edges.sqlite.store import SqliteStore
from forge_actors.testing.launcher import FakeLauncher
from tests.actors.kit import CANDIDATE, WRITE, World, limits, world

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.mock_clock


async def submit(made: World, *jobs: str) -> None:
    await made.submit(*(made.job(job, work=CANDIDATE, claims=WRITE) for job in jobs))


async def test_one_that_is_not_admitted_is_cancelled_and_frees_all_it_had(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, limits=limits(workers=1)) as made:
        made.admissions.reason = "issue #7 was closed meanwhile"
        await submit(made, "it")
        assert isinstance(made.store, SqliteStore)
        assert made.states() == {"it": "cancelled"}
        [(text,)] = made.store.reader.execute("SELECT error FROM job").fetchall()
        assert "NOT_ADMITTED" in str(text)
        assert "issue #7 was closed meanwhile" in str(text)
        assert made.launched == []
        assert len(made.admissions.asked) == 1, "it is not tried again"
        made.admissions.reason = None
        await submit(made, "next")
        assert made.running == ["next"]


async def test_it_has_its_tokens_while_it_is_asked_for_and_can_be_cancelled() -> None:
    async with world(limits=limits(workers=1)) as made:
        made.admissions.held = trio.Event()
        await submit(made, "it")
        await made.submit(made.job("other"))
        assert len(made.admissions.asked) == 1
        assert made.running == []
        await made.cancel("it")
        await trio.testing.wait_all_tasks_blocked()
        assert made.states()["it"] == "cancelled"
        assert made.admissions.given == []
        assert made.running == ["other"]


async def test_the_next_owner_asks_anew(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        made.admissions.held = trio.Event()
        await submit(made, "it")
        await made.crash()
        assert [order.attempt for order in made.admissions.asked] == [1, 2]
        await made.stop("detached")
        assert made.admissions.given == []
    async with world(tmp_path) as made:
        await trio.testing.wait_all_tasks_blocked()
        [order] = made.admissions.asked
        assert (order.job, order.attempt) == ("it", 3)
        assert order.admission is not None
        assert (order.admission.work, order.admission.issue) == (CANDIDATE, 7)
        assert made.running == ["it"]
        await made.finish("it")
        assert made.states() == {"it": "succeeded"}


async def test_two_cancels_are_two_stops_and_a_third_is_none() -> None:
    async with world(launcher=FakeLauncher(obeys_stop=False)) as made:
        await submit(made, "it")
        for _ in range(3):
            await made.cancel("it")
        assert len(made.launcher.stops) == 2
        await made.finish("it", exit_code=130)
        assert made.states() == {"it": "cancelled"}


async def test_one_that_runs_cannot_be_paused_and_one_that_waits_can() -> None:
    async with world(limits=limits(workers=1)) as made:
        await submit(made, "runs", "waits")
        with pytest.raises(Refused, match="cannot be paused"):
            await made.steer("runs", "pause")
        await made.steer("waits", "hold")
        await made.finish("runs")
        assert made.running == []
        assert made.states() == {"runs": "succeeded", "waits": "queued"}
