"""What runs goes on without its runtime, and the next one adopts it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from forge_actors.actors import supervisor
from forge_actors.domain.scopes import EVERYTHING
from forge_actors.testing.launcher import FakeLauncher
from tests.actors.kit import BROKEN, WRITE, limits, world
from tests.actors.repository_kit import memory

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from tests.actors.kit import World

pytestmark = pytest.mark.mock_clock


class Home:
    """One home over several runtimes, which leave what runs alone."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.launcher = FakeLauncher(durable=True)

    def runtime(self, **settings: Any) -> AbstractAsyncContextManager[World]:
        settings = {"stop": "detached", **settings}
        return world(self._path, launcher=self.launcher, **settings)


@asynccontextmanager
async def next_runtime(made: World) -> AsyncGenerator[None, None]:
    """Another supervisor on the same store, after the first has ended."""
    made.ended = trio.Event()
    async with trio.open_nursery() as nursery:
        await made.start(nursery)
        await trio.testing.wait_all_tasks_blocked()
        yield
        await made.stop("detached")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


async def test_a_detached_runtime_ends_at_once_and_leaves_alone_what_runs(
    home: Home,
) -> None:
    async with home.runtime(limits=limits(workers=2)) as made:
        await made.submit(*(made.job(f"a{n}") for n in range(3)))
        await trio.sleep(1)
        before = trio.current_time()
        await made.stop("detached")
        assert trio.current_time() == before
    assert home.launcher.stops == []
    assert [attempt.order.job for attempt in home.launcher.running] == ["a0", "a1"]
    async with home.runtime(started=False) as made:
        assert made.states() == {"a0": "running", "a1": "running", "a2": "queued"}


async def test_the_next_runtime_adopts_all_that_runs_and_launches_none_of_it(
    home: Home,
) -> None:
    async with home.runtime() as made:
        await made.submit(*(made.job(f"a{n}") for n in range(4)), made.job("waits"))
    async with home.runtime() as made:
        assert made.running == ["a0", "a1", "a2", "a3"]
        assert (await made.survey()).tokens["workers"].jobs == tuple(made.running)
        await made.finish("a0", exit_code=0)
        assert made.states()["a0"] == "succeeded"
        await made.finish("a1", exit_code=9)
        assert made.states()["a1"] == "failed"
        assert made.launched == ["a0", "a1", "a2", "a3", "waits"]
        await made.finish("a2", "a3", "waits")
        survey = await made.survey()
        assert survey.tokens["workers"].used == survey.active_repositories == 0
    assert home.launcher.running == []


async def test_an_end_that_no_runtime_saw_is_recorded_by_the_next(home: Home) -> None:
    async with home.runtime() as made:
        await made.submit(made.job("good"), made.job("bad"), made.job("killed"))
    home.launcher.finish("good", exit_code=0)
    home.launcher.finish("bad", exit_code=9)
    home.launcher.finish("killed", signal="SIGKILL")
    async with home.runtime() as made:
        assert made.states() == {
            "good": "succeeded",
            "bad": "failed",
            "killed": "human_attention_required",
        }
        rows = made.store.reader.execute(
            "SELECT json_extract(receipt, '$.exit_code') FROM job WHERE id = 'bad'"
        )
        assert rows.fetchall() == [(9,)]
        assert sorted(home.launcher.forgotten) == [
            ("bad", 1),
            ("good", 1),
            ("killed", 1),
        ]


async def test_an_exit_that_was_told_before_the_detach_is_recorded(
    home: Home,
) -> None:
    async with home.runtime() as made:
        await made.submit(made.job("a"), made.job("b"))
        home.launcher.finish("a")
        await trio.testing.wait_all_tasks_blocked()
        await made.stop("detached")
        assert made.states()["a"] == "succeeded"


async def test_a_lower_limit_ends_nothing_and_starts_nothing_until_it_fits(
    home: Home,
) -> None:
    async with home.runtime(repos=("one", "two"), limits=limits(local=2)) as made:
        await made.submit(
            *(made.job(f"a{n}", "one", provider="local") for n in range(2)),
            *(made.job(f"b{n}", "two") for n in range(2)),
        )
    lower = limits(workers=2, repositories=1)
    async with home.runtime(repos=("one", "two"), limits=lower) as made:
        use = (await made.survey()).tokens["workers"]
        assert (use.used, use.limit) == (4, 2)
        await made.submit(made.job("next", "one"))
        await made.finish("a0", "a1", "b0")
        assert made.running == ["b1"]
        await made.finish("b1")
        assert made.running == ["next"]


async def test_what_was_not_launched_yet_runs_later_whatever_its_policy() -> None:
    async with world(launcher=FakeLauncher(durable=True)) as made:
        store = memory(made)
        await made.save(made.job("a", replay="never", max_attempts=1))
        store.hold("repo")
        await made.open()
        await trio.testing.wait_all_tasks_blocked()
        await made.stop("detached")
        store.release("repo")
        await trio.testing.wait_all_tasks_blocked()
        assert made.states() == {"a": "dispatched"}
        assert made.launched == []
        async with next_runtime(made):
            assert [attempt.key for attempt in made.launcher.running] == [("a", 2)]


async def test_a_claim_is_held_by_what_was_adopted(home: Home) -> None:
    async with home.runtime() as made:
        await made.submit(made.job("a", claims=WRITE))
    async with home.runtime() as made:
        await made.submit(made.job("b", claims=WRITE))
        assert made.running == ["a"]
        waits = await made.explain("b")
        assert waits is not None
        assert waits.waiting is not None
        assert waits.waiting.holders == ("a",)
        await made.finish("a")
        assert made.running == ["b"]


async def test_a_paused_job_stays_paused_and_another_does_not(home: Home) -> None:
    async with home.runtime() as made:
        await made.submit(made.job("still"))
        await made.submit(made.job("goes"))
        await made.steer("still", "pause")
    # The word that it may go on never reached it.
    home.launcher.running[1].pause()
    async with home.runtime() as made:
        assert made.paused == ["still"]
        await made.steer("still", "resume")
        assert made.paused == []
        await made.pause(EVERYTHING, jobs=True)
        assert made.paused == ["still", "goes"]
    async with home.runtime() as made:
        assert made.paused == ["still", "goes"]


async def test_an_adopted_job_is_cancelled_like_any_other(home: Home) -> None:
    async with home.runtime() as made:
        await made.submit(made.job("a"))
    async with home.runtime() as made:
        assert await made.cancel("a")
        await trio.testing.wait_all_tasks_blocked()
        assert made.states()["a"] == "cancelled"


async def test_a_cancel_stands_though_the_runtime_stops_the_job_already() -> None:
    launcher = FakeLauncher(obeys_stop=False, durable=True)
    async with world(launcher=launcher) as made:
        await made.submit(made.job("a", replay="safe"))
        made.mailbox.tell(supervisor.Stop("shutdown"))
        await trio.testing.wait_all_tasks_blocked()
        assert await made.cancel("a")
        await made.finish("a", ending="stop", signal="SIGTERM")
        await made.ended.wait()
        assert made.states() == {"a": "cancelled"}


async def test_a_cancel_stands_when_its_end_comes_after_the_runtime(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path)
    home.launcher = FakeLauncher(durable=True, obeys_stop=False)
    async with home.runtime() as made:
        await made.submit(made.job("a", replay="safe"))
        await made.cancel("a")
        assert home.launcher.stops == [("a", 1, None, "cancel")]
    home.launcher.finish("a", signal="SIGTERM", ending="cancel")
    async with home.runtime() as made:
        assert made.states()["a"] == "cancelled"


async def test_what_was_adopted_is_stopped_with_the_jobs_of_a_shutdown(
    home: Home,
) -> None:
    async with home.runtime() as made:
        await made.submit(made.job("a", replay="safe"))
    async with home.runtime() as made:
        await made.stop("shutdown")
        assert made.states()["a"] == "queued"
    assert home.launcher.running == []


async def test_the_start_of_what_was_only_dispatched_is_told() -> None:
    launcher = FakeLauncher(durable=True)
    async with world(launcher=launcher, stop="detached") as made:
        await made.submit(made.job("a"))
        store = memory(made)
        store.crash()  # the start was not durable yet
        await made.stop("detached")
        assert store.durable.jobs["a"].state == "dispatched"
        async with next_runtime(made):
            await trio.sleep(1)
            assert made.states()["a"] == "running"


async def test_an_actor_that_fails_while_it_adopts_ends_nothing(home: Home) -> None:
    async with home.runtime() as made:
        await made.submit(made.job("a"), made.job("b"))
        actor = await made.open()
        for _ in range(2):
            actor.tell(BROKEN)
            await trio.testing.wait_all_tasks_blocked()
            actor = await made.open()
        assert made.running == ["a", "b"]
        assert (await made.survey()).tokens["workers"].used == 2
        await made.finish("a", "b")
        assert set(made.states().values()) == {"succeeded"}
        assert (await made.survey()).tokens["workers"].used == 0
    assert home.launcher.stops == []
