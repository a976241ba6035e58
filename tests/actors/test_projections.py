"""The projections: what is marked, when it is looked at, and what that may cost."""

from __future__ import annotations

import pytest
import trio
from msgspec import structs

from forge_actors.actors import projections
from forge_actors.domain.changes import LookSaved, RepositoryChanged
from forge_actors.domain.errors import WriterFenced
from forge_actors.domain.events import Event
from forge_actors.domain.git_status import GitStatus
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.looking import JOB_ENDED, OVERHEAD, PATIENCE, Look
from forge_actors.testing.checkouts import CLEAN
from forge_actors.testing.made_changes import dispatched, job, repository
from forge_actors.testing.store import MemoryStore
from tests.actors.projections_kit import SOON, World

pytestmark = pytest.mark.mock_clock


async def test_a_repository_is_looked_at_soon_after_its_job_has_ended() -> None:
    async with World("repo", "other").open() as world:
        world.checkouts.change("repo")
        world.board.ended("repo")
        await trio.sleep(SOON)
        look = world.look("repo")
        assert look.status == GitStatus("main", "a" * 40, untracked=1)
        assert look.dirty is None
        assert world.sampler.begun == ["repo"], "and nobody else"


async def test_many_ends_are_few_samples() -> None:
    async with World("repo").open() as world:
        for _ in range(1000):
            world.board.ended("repo")
            await trio.sleep(0.005)
        await trio.sleep(SOON)
        assert 2 <= len(world.sampler.begun) <= 12
        assert world.look("repo").dirty is None


async def test_a_queue_is_looked_at_now_and_then_and_when_it_is_done() -> None:
    async with World("repo").open() as world:
        world.active.add("repo")
        for _ in range(120):
            world.board.ended("repo")
            await trio.sleep(0.1)
        assert len(world.sampler.begun) == 2
        world.checkouts.change("repo")
        world.active.clear()
        world.board.ended("repo")
        await trio.sleep(SOON)
        assert world.look("repo").status == structs.replace(CLEAN, untracked=1)


async def test_an_end_during_a_sample_asks_for_another_one() -> None:
    async with World("repo").open() as world:
        world.sampler.takes = 5.0
        world.board.ended("repo")
        await trio.sleep(SOON)
        assert world.sampler.running == 1
        world.checkouts.change("repo")  # too late for the one that runs
        world.board.ended("repo")
        await trio.sleep(5.0)
        assert world.look("repo").dirty is not None
        assert world.look("repo").status == CLEAN
        await trio.sleep(6.0)
        assert world.look("repo").dirty is None
        assert world.sampler.begun == ["repo", "repo"]


async def test_a_mark_is_durable_before_its_sample() -> None:
    async with World("repo").open() as world:
        world.set(enabled=False)
        world.board.ended("repo")
        await trio.sleep(SOON)
        saved = world.store.durable.looks["repo"]
        assert saved.dirty is not None
        assert saved.dirty.reason == JOB_ENDED
        commits = world.store.commits
        for _ in range(100):
            world.board.ended("repo")
            await trio.sleep(1.0)
        assert world.store.commits == commits, "one that is marked is saved once"


async def test_a_restart_takes_up_what_was_marked() -> None:
    first = World("repo", "other")
    async with first.open() as world:
        world.set(enabled=False)
        world.board.ended("repo")
        await trio.sleep(SOON)
        first.store.crash()
    async with World(store=MemoryStore(durable=first.store.durable)).open() as world:
        await trio.sleep(SOON)
        assert world.sampler.begun == ["repo"]
        assert world.look("repo").dirty is None


async def test_jobs_that_nobody_could_mark_are_found_after_a_restart() -> None:
    store = MemoryStore()
    async with store.open():
        for name in ("ran", "idle", "running"):
            store.save([repository(name)])
        store.save([job("one", "ran"), dispatched("one", "ran")])
        store.save([LookSaved(Look("running").sampled(0, CLEAN, 50.0, busy=True))])
    async with World(store=store).open() as world:
        await trio.sleep(SOON)
        assert sorted(world.sampler.begun) == ["ran", "running"]
        assert world.look("ran").dirty is None


async def test_that_jobs_ran_meanwhile_is_remembered() -> None:
    async with World("repo").open() as world:
        world.running.add("repo")
        world.board.ended("repo")
        await trio.sleep(SOON)
        assert world.look("repo").busy


async def test_a_failing_sample_backs_off_and_keeps_what_was_known() -> None:
    async with World("repo", "other").open() as world:
        world.board.ended("repo")
        await trio.sleep(SOON)
        world.checkouts.gone.add("repo")
        world.board.ended("repo")
        await trio.sleep(10.0)
        look = world.look("repo")
        assert look.status == CLEAN
        assert look.error == "its folder is gone: /repo"
        assert look.failures == 4  # at 0, 1, 3 and 7 s
        await trio.sleep(600.0)
        assert world.look("repo").failures == PATIENCE, "the safety round is left"
        assert world.look("repo").dirty is None
        world.board.ended("other")
        await trio.sleep(SOON)
        assert world.look("other").status == CLEAN
        world.checkouts.gone.clear()
        world.board.ended("repo")
        await trio.sleep(SOON)
        assert (world.look("repo").failures, world.look("repo").error) == (0, None)


async def test_one_that_hangs_holds_up_none_of_the_others() -> None:
    names = [f"r{number}" for number in range(20)]
    async with World("slow", *names).open() as world:
        world.checkouts.hangs.add("slow")
        world.board.ended("slow")
        await trio.sleep(0.5)
        for name in names:
            world.board.ended(name)
        await trio.sleep(3.0)
        assert set(world.sampler.begun) == {"slow", *names}
        assert world.sampler.running == 1
        await trio.sleep(3.0)
        assert "took longer" in (world.look("slow").error or "")


async def test_samples_keep_to_their_share_of_a_processor() -> None:
    names = [f"r{number:04}" for number in range(1000)]
    async with World(*names).open() as world:
        world.sampler.cost = 0.01 - OVERHEAD
        began = trio.current_time()
        for name in names:
            world.board.ended(name)
        while len(world.sampler.begun) < 1000:
            await trio.sleep(0.5)
        took = trio.current_time() - began
        assert 49.0 < took < 60.0
        assert world.sampler.most <= projections.PARALLEL
        assert len(set(world.sampler.begun)) == 1000


async def test_the_share_can_be_changed_while_it_runs() -> None:
    names = [f"r{number:04}" for number in range(100)]
    async with World(*names).open() as world:
        world.sampler.cost = 0.01
        world.set(share=1.0)
        for name in names:
            world.board.ended(name)
        await trio.sleep(2.0)
        assert len(world.sampler.begun) == 100


async def test_what_was_marked_first_is_looked_at_first() -> None:
    async with World("a", "b", "c").open() as world:
        world.set(enabled=False)
        for name in ("c", "a", "b"):
            world.board.ended(name)
            await trio.sleep(1.0)
        world.board.ended("c")  # again: it keeps its place
        await trio.sleep(1.0)
        world.set(enabled=True, share=0.01)
        await trio.sleep(10.0)
        assert world.sampler.begun == ["c", "a", "b"]


# The safety round


async def test_an_idle_runtime_looks_at_the_oldest_once_in_a_while() -> None:
    first = World("a", "b", "c")
    async with first.open() as world:
        world.set(period=60.0)
        await trio.sleep(61.0)
        assert world.sampler.begun == ["a"]
        await trio.sleep(60.0)
        assert world.sampler.begun == ["a", "b"]
    second = World(store=MemoryStore(durable=first.store.durable))
    second.clock.shift(121.0)
    async with second.open() as world:
        world.set(period=60.0)
        await trio.sleep(121.0)
        assert world.sampler.begun == ["c", "a"], "it goes on where it was"


async def test_the_round_passes_one_that_fails() -> None:
    async with World("a", "b").open() as world:
        world.set(period=60.0)
        world.checkouts.gone.add("a")
        await trio.sleep(245.0)
        assert world.sampler.begun == ["a", "b", "a", "b"]


async def test_what_fails_and_waits_does_not_stop_the_round() -> None:
    async with World("a", "b").open() as world:
        world.set(period=5.0)
        world.checkouts.gone.add("a")
        world.board.ended("a")
        await trio.sleep(60.0)
        assert "b" in world.sampler.begun


async def test_ten_thousand_repositories_that_sleep_cost_nothing() -> None:
    names = [f"r{number:05}" for number in range(10_000)]
    async with World(*names).open() as world:
        await trio.sleep(0.1)
        statistics = trio.lowlevel.current_statistics()
        assert statistics.tasks_living < 15, "no task of their own"
        assert world.store.look("r00000") is None
        assert not world.watch.watched
        await trio.sleep(3600.0)
        assert world.sampler.begun == []


async def test_of_many_that_are_added_some_are_looked_at_at_once() -> None:
    names = [f"r{number:04}" for number in range(1000)]
    async with World(*names).open() as world:
        for name in names:
            world.board.added(name)
        await trio.sleep(60.0)
        assert len(world.sampler.begun) == projections.MAX_ADDED
        assert not world.watch.watched


# What is told


async def test_only_what_people_want_to_know_is_told() -> None:
    async with World("repo").open() as world:
        world.board.ended("repo")
        await trio.sleep(SOON)
        assert world.told == [], "the first look is no change"
        for _ in range(3):
            world.checkouts.change("repo")
            world.board.ended("repo")
            await trio.sleep(SOON)
        [event] = world.told
        assert event.repo == "repo"
        assert event.data == {"branch": "main", "head": "a" * 40, "clean": False}


async def test_a_removed_repository_is_forgotten() -> None:
    async with World("repo", "other").open() as world:
        world.sampler.takes = 2.0
        world.board.ended("repo")
        world.board.ended("other")
        await trio.sleep(SOON)
        held = world.store.durable.repositories["repo"]
        gone = structs.replace(held, removed_at=world.clock.now())
        event = Event("repository_removed", world.clock.now(), "repo")
        await world.store.save([RepositoryChanged(gone, event)]).wait()
        world.board.ended("repo")
        await trio.sleep(10.0)
        assert world.store.look("repo") is None
        assert world.look("other").status == CLEAN
        assert world.sampler.begun.count("repo") == 1


async def test_nothing_is_looked_at_while_nothing_can_be_saved() -> None:
    async with World("repo").open() as world:
        world.saving = False
        world.board.ended("repo")
        await trio.sleep(60.0)
        assert world.sampler.begun == []
        world.saving = True
        await trio.sleep(projections.TROUBLE_SECONDS + SOON)
        assert world.sampler.begun == ["repo"]


async def test_a_fenced_runtime_marks_nothing() -> None:
    world = World("repo")
    with pytest.RaisesGroup(WriterFenced, flatten_subgroups=True):
        async with world.open():
            other = MemoryStore(durable=world.store.durable)
            other.take_over("other", ProcessIdentity("boot", 2, 3), "r", 1.0)
            world.board.ended("repo")
            await trio.sleep(60.0)
    assert world.store.durable.looks == {}


async def test_the_news_of_an_actor_that_failed_wait_for_the_next_one() -> None:
    world = World("repo")
    async with world.open():
        pass
    world.board.ended("repo")
    async with World(store=MemoryStore(durable=world.store.durable)).open() as after:
        after.board.ended("repo")
        await trio.sleep(SOON)
        assert after.sampler.begun == ["repo"]
