"""Short jobs that wait at the launcher: in turn, within all limits, never for long."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.actors import supervisor_messages
from forge_actors.actors.ahead import (
    BEGUN_SECONDS,
    FOR_EACH,
    SHORT_IN_TURN,
    SHORT_SECONDS,
    WAIT_SECONDS,
)
from forge_actors.actors.attempts import Attempts
from forge_actors.actors.pressure import PRESSURE_SECONDS
from forge_actors.domain.capacity import RepositoryLimits
from forge_actors.testing.launcher import FakeLauncher
from forge_actors.testing.store import MemoryStore
from tests.actors.kit import CANDIDATE, WRITE, World, limits, world

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from forge_actors.testing.rows import Rows

pytestmark = pytest.mark.mock_clock

REPOS = ("a", "b", "c", "d")


@asynccontextmanager
async def busy(
    *, workers: int = 2, ahead: int = 2, jobs: int = 4
) -> AsyncGenerator[World]:
    """A world in which all workers have jobs, and the last ones were short."""
    some = structs.replace(limits(workers=workers), ahead=ahead)
    launcher = FakeLauncher(now=trio.current_time)
    async with world(repos=(*REPOS, "other"), launcher=launcher, limits=some) as made:
        for number in range(SHORT_IN_TURN):
            await made.submit(made.job(f"short{number}", "other"))
            await made.finish(f"short{number}")
        for n in range(jobs):
            await made.submit(made.job(f"j{n}", REPOS[n % len(REPOS)]))
        yield made


def behind(made: World) -> list[str]:
    return [each.order.job for each in made.launcher.behind]


def rows(made: World) -> Rows:
    assert isinstance(made.store, MemoryStore)
    return made.store.durable


async def test_the_next_ones_wait_at_the_launcher_and_hold_no_tokens() -> None:
    async with busy(jobs=5) as made:
        assert sorted(made.running) == ["j0", "j1"]
        assert behind(made) == ["j2", "j3"]
        survey = await made.survey()
        assert survey.tokens["workers"].jobs == ("j0", "j1")
        assert survey.active_repositories == 4
        await made.finish("j1")
        assert sorted(made.running) == ["j0", "j2"]
        assert behind(made) == ["j3", "j4"]
        assert (await made.survey()).tokens["workers"].jobs == ("j0", "j2")


async def test_no_more_wait_than_begin_in_time() -> None:
    async with busy(workers=1, ahead=100, jobs=FOR_EACH + 3) as made:
        assert behind(made) == [f"j{n + 1}" for n in range(FOR_EACH)]
    assert FOR_EACH * SHORT_SECONDS < WAIT_SECONDS


async def test_nothing_is_told_of_one_before_the_end_that_made_room() -> None:
    async with busy(workers=1, ahead=3, jobs=2) as made:
        assert behind(made) == ["j1"]
        # Both end in the same moment, and in this order.
        for job in ("j0", "j1"):
            made.launcher.finish(job)
        await trio.testing.wait_all_tasks_blocked()
        told = [(e.job, e.kind) for e in rows(made).events]
        assert [kind for job, kind in told if job == "j1"] == [
            "job_queued",
            "job_readied",
            "job_dispatched",
            "job_running",
            "job_succeeded",
        ]
        ended = told.index(("j0", "job_succeeded"))
        assert ended < told.index(("j1", "job_dispatched"))
        assert set(made.states().values()) == {"succeeded"}


async def test_what_waits_for_long_is_withdrawn_and_begins_in_its_turn() -> None:
    async with busy(workers=1, ahead=1, jobs=2) as made:
        assert behind(made) == ["j1"]
        await trio.sleep(WAIT_SECONDS * 2)
        await trio.testing.wait_all_tasks_blocked()
        assert behind(made) == []
        assert made.states()["j1"] == "queued"
        await made.submit(made.job("urgent", "c", priority=0))
        await made.finish("j0")
        assert made.running == ["urgent"]
        await made.finish("urgent")
        assert made.running == ["j1"]
        await made.finish("j1", exit_code=1)
        job = rows(made).jobs["j1"]
        assert (job.state, job.attempt, job.counted) == ("failed", 2, 1)


@pytest.mark.parametrize("how", ["pause", "limits", "here"])
async def test_what_has_not_begun_begins_no_more(how: str) -> None:
    async with busy(workers=1, ahead=1, jobs=3) as made:
        assert behind(made) == ["j1"]
        if how == "pause":
            await made.pause("all")
        elif how == "limits":
            fewer = structs.replace(limits(workers=1), ahead=0)
            of_each = RepositoryLimits(4, 1800.0)
            made.mailbox.tell(supervisor_messages.SetLimits(fewer, of_each))
        else:
            await made.pause("repo:b")
        await trio.testing.wait_all_tasks_blocked()
        assert "j1" not in behind(made)


async def test_over_a_limit_that_was_lowered_nothing_waits_there() -> None:
    async with busy(workers=3, ahead=1, jobs=3) as made:
        lower = structs.replace(limits(workers=1), ahead=1)
        made.mailbox.tell(supervisor_messages.SetLimits(lower, RepositoryLimits(4, 60)))
        await made.submit(made.job("next", "d"))
        await made.finish("j0")
        assert (made.running, behind(made)) == (["j1", "j2"], [])
        await made.finish("j1")
        assert (made.running, behind(made)) == (["j2"], ["next"])


async def test_under_pressure_nothing_waits_there() -> None:
    async with busy(workers=1, ahead=1, jobs=1) as made:
        made.pressure = "little memory"
        made.launcher.finish("j0")
        await trio.sleep(PRESSURE_SECONDS)
        for number in range(SHORT_IN_TURN + 1):
            await made.submit(made.job(f"more{number}", "b"))
        for number in range(SHORT_IN_TURN):
            assert behind(made) == []
            await made.finish(f"more{number}")
        assert made.running == [f"more{SHORT_IN_TURN}"]


async def test_long_jobs_let_nothing_wait_at_the_launcher() -> None:
    async with busy(workers=1, ahead=1, jobs=1) as made:
        await trio.sleep(1.0)
        for job in ("next", "last"):
            await made.submit(made.job(job, "b", claims=WRITE))
        assert behind(made) == ["next"]
        await made.finish("j0")
        # One that was long ended.
        assert (made.running, behind(made)) == (["next"], [])


async def test_one_that_needs_other_tokens_is_not_passed_over() -> None:
    async with busy(workers=1, ahead=2, jobs=1) as made:
        await made.submit(
            made.job("check", "b", kind="check", priority=0), made.job("plain", "c")
        )
        assert behind(made) == []
        await made.finish("j0")
        assert made.running == ["check"]


async def test_one_begins_though_the_end_before_it_is_never_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with busy(workers=1, ahead=1, jobs=2) as made:
        monkeypatch.setattr(Attempts, "release", lambda _: None)
        made.launcher.finish("j0")
        made.launcher.finish("j1")
        await trio.testing.wait_all_tasks_blocked()
        assert made.states()["j1"] == "dispatched"
        await trio.sleep(BEGUN_SECONDS + WAIT_SECONDS)
        await trio.testing.wait_all_tasks_blocked()
        assert made.states()["j1"] == "succeeded"


async def test_nothing_goes_before_what_an_end_may_let_start() -> None:
    async with busy(workers=1, ahead=1, jobs=0) as made:
        first = made.job("first", "a", claims=WRITE, priority=0)
        after = made.job("after", "a", after=("first",), priority=1)
        await made.submit(first, after)
        await made.submit(made.job("late", "b", priority=4))
        await made.submit(made.job("urgent", "a", claims=WRITE, priority=0))
        assert (made.running, behind(made)) == (["first"], [])
        await made.finish("first")
        assert (made.running, behind(made)) == (["urgent"], ["after"])
        await made.finish("urgent", "after")
        assert made.running == ["late"]


async def test_what_is_as_urgent_goes_by_its_place_in_line() -> None:
    async with busy(workers=1, ahead=1, jobs=0) as made:
        for job in ("one", "two"):
            await made.submit(made.job(job, "a", claims=WRITE))
        await made.submit(made.job("other", "b"))
        # Its repository was served longest ago.
        assert (made.running, behind(made)) == (["one"], ["other"])


async def test_nothing_waits_there_while_another_is_being_prepared() -> None:
    async with busy(workers=2, ahead=2, jobs=1) as made:
        made.admissions.held = trio.Event()
        await made.submit(made.job("slow", "b", work=CANDIDATE))
        await made.submit(made.job("next", "c"))
        # It has a token, and the launcher would have room in its place.
        assert (made.running, behind(made)) == (["j0"], [])
        made.admissions.held.set()
        await trio.testing.wait_all_tasks_blocked()
        assert (made.running, behind(made)) == (["j0", "slow"], ["next"])


async def test_what_is_to_be_prepared_waits_for_tokens_as_any_other() -> None:
    async with busy(workers=1, ahead=1, jobs=1) as made:
        await made.submit(made.job("slow", "b", work=CANDIDATE))
        await made.submit(made.job("next", "c"))
        assert (made.running, behind(made)) == (["j0"], ["next"])
        assert made.admissions.asked == []
        kinds = [e.kind for e in rows(made).events if e.job == "slow"]
        assert kinds == ["job_queued", "job_readied", "job_queued"]
        await made.finish("j0", "next")
        assert made.running == ["slow"]
        assert rows(made).jobs["slow"].counted == 1
