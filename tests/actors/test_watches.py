"""Watches: whose files are watched, since when, and what becomes of a refusal."""

from __future__ import annotations

import pytest
import trio
from msgspec import structs

from forge_actors.actors import watches
from forge_actors.domain.looking import Unwatchable
from forge_actors.testing.checkouts import CLEAN
from tests.actors.projections_kit import World

pytestmark = pytest.mark.mock_clock


async def test_a_repository_with_jobs_is_looked_at_when_its_files_change() -> None:
    async with World("repo", "other").open() as world:
        world.set(watch=True)
        world.board.used("repo")
        await trio.sleep(3.0)
        assert world.watch.watched == {"repo"}
        begun = len(world.sampler.begun)
        world.checkouts.change("repo")
        world.checkouts.change("other")
        await trio.sleep(3.0)
        assert world.look("repo").status == structs.replace(CLEAN, untracked=1)
        assert world.sampler.begun[begun:] == ["repo"]


async def test_files_that_change_all_the_time_cost_a_sample_a_second_at_most() -> None:
    async with World("repo").open() as world:
        world.set(watch=True)
        world.board.used("repo")
        for _ in range(1000):
            await trio.sleep(0.01)
            world.checkouts.change("repo")
        assert len(world.sampler.begun) <= 11


async def test_what_was_used_last_is_watched_and_no_more_of_them() -> None:
    names = [f"r{number:03}" for number in range(100)]
    async with World(*names).open() as world:
        world.set(watch=True)
        for name in names:
            world.board.used(name)
            await trio.sleep(0.3)
        await trio.sleep(3.0)
        assert world.watch.watched == set(names[-watches.WATCHED :])
        world.board.ended(names[0])
        await trio.sleep(3.0)
        assert names[0] in world.watch.watched
        assert len(world.watch.watched) == watches.WATCHED


async def test_what_sleeps_is_not_watched() -> None:
    async with World("repo", "busy").open() as world:
        world.set(watch=True)
        world.active.add("busy")
        for name in ("repo", "busy"):
            world.board.used(name)
        await trio.sleep(watches.AWAKE_SECONDS - 1.0)
        assert world.watch.watched == {"repo", "busy"}
        await trio.sleep(2.0)
        assert world.watch.watched == {"busy"}
        world.active.clear()
        await trio.sleep(watches.AWAKE_SECONDS)
        assert world.watch.watched == set()


async def test_where_the_system_allows_no_watch_there_is_one_notice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    names = [f"r{number}" for number in range(10)]
    async with World("first", *names).open() as world:
        world.set(watch=True)
        world.board.used("first")
        await trio.sleep(3.0)
        world.watch.refusal = Unwatchable("no watches are left", everywhere=True)
        for name in names:
            world.board.ended(name)
            await trio.sleep(0.5)
        await trio.sleep(3.0)
        assert world.notices == ["no watches are left"]
        assert caplog.text.count("no watches are left") == 1
        assert set(names) <= set(world.sampler.begun), "jobs are noticed all the same"
        # The one that stands goes on.
        world.checkouts.change("first")
        await trio.sleep(3.0)
        assert world.look("first").status == structs.replace(CLEAN, untracked=1)


async def test_one_that_cannot_be_watched_does_not_end_the_others() -> None:
    async with World("large", "small").open() as world:
        world.set(watch=True)
        world.watch.refusal = Unwatchable("it has too many folders")
        world.board.used("large")
        await trio.sleep(3.0)
        world.watch.refusal = None
        world.board.used("small")
        await trio.sleep(3.0)
        assert world.watch.watched == {"small"}
        assert world.notices == []
        assert world.watched == {"large": "it has too many folders", "small": None}


async def test_watching_can_be_switched_off_and_on() -> None:
    async with World("repo").open() as world:
        world.set(watch=True)
        world.board.used("repo")
        await trio.sleep(3.0)
        world.set(watch=False)
        await trio.sleep(3.0)
        assert world.watch.watched == set()
        world.set(watch=True)
        await trio.sleep(3.0)
        assert world.watch.watched == {"repo"}


async def test_what_somebody_waits_for_is_watched_also_without_jobs() -> None:
    async with World("repo", "used").open() as world:
        world.set(watch=True)
        world.board.used("used")
        await trio.sleep(0.1)  # it has read its board just now
        world.board.wait_for(frozenset({"repo"}))
        await trio.sleep(watches.AWAKE_SECONDS + 5.0)
        assert world.watch.watched == {"repo"}
        world.checkouts.change("repo")
        await trio.sleep(3.0)
        assert world.looked[-1] == "repo"
        world.set(watch=False)
        await trio.sleep(3.0)
        assert world.watch.watched == set()
        world.set(watch=True)
        await trio.sleep(3.0)
        assert world.watch.watched == {"repo"}
        world.board.wait_for(frozenset())
        await trio.sleep(3.0)
        assert world.watch.watched == set()
