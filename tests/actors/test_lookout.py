"""The lookout: what it sees is told once, also when it looks anew."""

from __future__ import annotations

import pytest
import trio
from msgspec import structs

from forge_actors.actors import job_ends
from forge_actors.domain.causes import Ended
from forge_actors.domain.errors import WorktreeFailed
from forge_actors.domain.git_status import GitStatus
from forge_actors.domain.schedule_changes import OccurrenceSaved
from forge_actors.domain.schedules import MAX_CATCH_UP, Occurrence
from forge_actors.domain.sightings import MAX_BRANCHES, EndsSeen, read, written
from tests.actors.lookout_kit import World

pytestmark = pytest.mark.mock_clock
CLEAN = GitStatus("main", "a" * 40)
DIRTY = structs.replace(CLEAN, untracked=1)


async def test_the_ends_of_jobs_are_told_to_those_that_wait_for_them() -> None:
    async with World().open() as world:
        await world.end("build")
        await world.follow("succeeded:build")
        await world.follow("ended:label:night", "labelled")
        await world.follow("ended:*", "all", repo="other")
        build = await world.end("build")
        await world.end("build", "failed")
        await world.end("test")
        labelled = await world.end(labels=("night",), state="timed_out")
        other = await world.end(repo="other")
        assert world.windows() == [f"end-{build}"]
        assert world.windows("labelled") == [f"end-{labelled}"]
        assert world.windows("all") == [f"end-{other}"]
        assert world.watched == frozenset()


async def test_what_ended_while_nobody_looked_out_is_told_and_nothing_twice() -> None:
    world = World()
    async with world.open():
        await world.follow("ended:*")
        first = await world.end()
    second = None
    async with world.store.open():
        second = await world.end()
    async with world.open():
        third = await world.end()
        assert world.windows() == [f"end-{each}" for each in (first, second, third)]
    async with world.open():
        assert len(world.windows()) == 3


async def test_of_very_many_ends_the_last_are_told_and_the_others_counted() -> None:
    world = World()
    async with world.open():
        await world.follow("ended:*")
    async with world.store.open():
        for _ in range(MAX_CATCH_UP + 20):
            last = await world.end()
    async with world.open():
        told = world.told[-1]
        assert (len(told.windows), told.earlier) == (MAX_CATCH_UP, 20)
        assert told.windows[-1].key == f"end-{last}"


async def test_one_that_comes_later_is_told_what_it_has_not_seen_and_no_other() -> None:
    world = World()
    async with world.open():
        await world.follow("succeeded:build", "early")
        seen = world.schedules["early"].progress.seen
        build = await world.end("build")
        await world.follow("succeeded:name:bui*", "late", seen=seen)
        assert world.windows("early") == world.windows("late") == [f"end-{build}"]
        again = await world.end("build")
        for name in ("early", "late"):
            assert world.windows(name) == [f"end-{build}", f"end-{again}"]
        await world.leave("early")
        assert world.store.heard
        await world.leave("late")
        assert not world.store.heard


async def test_a_store_that_was_restored_begins_where_it_ends() -> None:
    world = World()
    async with world.open():
        await world.follow("ended:*", seen=written(EndsSeen(10**6)))
    async with world.store.open():
        end = await world.end()
    async with world.open():
        assert world.windows() == [f"end-{end}"]


async def test_what_was_read_for_nothing_is_not_read_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_ends, "SAVED_AFTER", 20)
    monkeypatch.setattr(job_ends, "PIECE", 3)
    async with World().open() as world:
        await world.follow("succeeded:build")
        told = len(world.told)
        for _ in range(20):
            await world.end("test")
        seen = read(world.schedules["s"].progress.seen, EndsSeen)
        assert seen is not None
        assert world.store.last_event() - seen.after <= 21
        assert told < len(world.told) <= told + 3


async def test_all_are_waited_for_over_a_restart() -> None:
    world = World()
    async with world.open():
        await world.follow("all:a,b")
        await world.end("a")
    async with world.open():
        assert world.windows() == []
        await world.end("b")
        assert len(world.windows()) == 1
        await world.end("b")
        assert len(world.windows()) == 1


async def test_what_comes_of_a_schedule_does_not_wake_it() -> None:
    async with World().open() as world:
        await world.follow("ended:*", "a")
        await world.follow("ended:name:x", "b")
        mine = await world.end(origin="schedule:a", name="x")
        assert world.windows("a") == []
        assert world.windows("b") == [f"end-{mine}"]
        told = Occurrence("occ-1", "b", f"end-{mine}", 1.0, 1.0, "run", "")
        await world.store.save([OccurrenceSaved(told)]).wait()
        await world.end(origin="schedule:b", request_id="occ-1", digest="d")
        assert world.windows("a") == [], "it would answer its own answer for ever"


async def test_one_job_is_told_also_when_it_has_ended_before() -> None:
    async with World().open() as world:
        done = await world.end()
        await world.follow(f"succeeded:job:{done}")
        assert world.windows() == [f"end-{done}"]
        await world.end()
        assert world.windows() == [f"end-{done}"]
        failed = await world.end(state="failed")
        await world.follow(f"succeeded:job:{failed}", "never")
        assert world.windows("never") == []
        assert "is failed" in world.told[-1].blind
        await world.follow("succeeded:job:nobody", "gone")
        assert "not known" in world.told[-1].blind


async def test_a_checkout_that_becomes_clean_is_told_once() -> None:
    world = World()
    async with world.open():
        await world.look(DIRTY)
        await world.follow("clean")
        assert world.watched == {"repo"}
        await world.look(CLEAN)
        await world.look(CLEAN)
        assert len(world.windows()) == 1
        await world.look(DIRTY)
    async with world.open():
        assert len(world.windows()) == 1
        await world.look(CLEAN)
        assert len(set(world.windows())) == 2
        await world.leave()
        assert world.watched == frozenset()


async def test_branches_that_move_are_told_also_after_a_restart() -> None:
    world = World()
    async with world.open():
        await world.follow("branch:m*")
        world.commits.branches = {"main": "b" * 40, "other": "b" * 40}
        await world.look(CLEAN)
        assert len(world.windows()) == 1
        await world.look(CLEAN)
        assert len(world.windows()) == 1
    world.commits.branches["main"] = "c" * 40
    async with world.open():
        assert len(world.windows()) == 2
        assert world.told[-1].windows[0].cause.endswith("c" * 12)


async def test_a_look_from_before_it_was_made_is_none_of_a_schedule() -> None:
    async with World().open() as world:
        world.commits.takes = 1.0
        await world.follow("branch:main", "first")
        # A read is under way that saw the branch where it was.
        world.commits.branches["main"] = "b" * 40
        seen = '{"heads":{"main":"' + "b" * 40 + '"},"moves":0}'
        await world.follow("branch:main", seen=seen)
        await world.settle()
        await trio.sleep(5.0)
        assert world.windows() == []
        assert len(world.windows("first")) == 1


async def test_files_are_told_when_commits_change_them() -> None:
    async with World().open() as world:
        await world.follow("file:src")
        world.commits.files = {"b" * 40: ["docs/a"], "c" * 40: ["src/a", "docs/a"]}
        for commit in ("b" * 40, "c" * 40, "c" * 40):
            world.commits.branches["main"] = commit
            await world.look(CLEAN)
        assert world.windows() == [f"file-1-{'c' * 12}"]


@pytest.mark.parametrize("on", ["branch:main", "file:docs/"])
async def test_what_comes_again_after_a_schedule_was_begun_anew_is_another_window(
    on: str,
) -> None:
    async with World().open() as world:
        world.commits.files = {each * 40: ["docs/a"] for each in "ab"}
        for begun in range(2):
            world.commits.branches["main"] = "a" * 40
            await world.follow(on, begun=begun)
            world.commits.branches["main"] = "b" * 40
            await world.look(CLEAN)
        assert len(set(world.windows())) == 2


async def test_one_that_changes_while_commits_are_read_is_read_for_again() -> None:
    async with World().open() as world:
        await world.follow("file:docs/")
        world.commits.files = {"b" * 40: ["docs/a"], "c" * 40: ["docs/b", "src/b"]}
        world.commits.branches["main"] = "b" * 40
        await world.look(CLEAN)
        world.commits.takes = 1.0
        world.commits.branches["main"] = "c" * 40
        await world.look(CLEAN)
        # Saved before it was told of the last commit.
        seen = '{"head":"' + "a" * 40 + '","changes":0}'
        await world.follow("file:docs/", seen=seen)
        await trio.sleep(5.0)
        assert world.told[-1].blind == ""
        assert world.windows() == [f"file-1-{'b' * 12}", f"file-1-{'c' * 12}"]


async def test_what_cannot_be_seen_is_said_until_it_can() -> None:
    async with World().open() as world:
        await world.follow("branch:main")
        world.commits.refusal = WorktreeFailed("its folder is gone")
        for _ in range(2):
            await world.look(CLEAN)
        assert [told.blind for told in world.told] == ["", "its folder is gone"]
        world.commits.refusal = None
        world.commits.branches = {"main": "b" * 40}
        await world.look(CLEAN)
        assert world.told[-1].blind == ""
        assert len(world.windows()) == 1
        await world.follow("branch:*", "many")
        many = {f"b{number}": "b" * 40 for number in range(MAX_BRANCHES + 1)}
        world.commits.branches = many
        await world.look(CLEAN)
        assert "more than" in world.told[-1].blind


async def test_many_looks_at_once_are_one_or_two_reads() -> None:
    async with World().open() as world:
        await world.follow("branch:main")
        world.commits.takes, before = 5.0, world.commits.reads
        for _ in range(20):
            await world.look(CLEAN)
        await trio.sleep(60.0)
        assert world.commits.reads == before + 2


async def test_a_bug_met_for_one_schedule_is_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with World().open() as world:
        await world.follow("succeeded:build")
        await world.follow("ended:*", "good")
        monkeypatch.setattr(
            Ended, "counts", lambda cause, state: 1 / (not cause.succeeded)
        )
        await world.end("build")
        assert "ZeroDivisionError" in world.schedules["s"].progress.blind
        assert len(world.windows("good")) == 1
