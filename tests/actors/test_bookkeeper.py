"""The bookkeeper: what goes is looked at again, in small pieces, with pauses."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from msgspec import structs

from forge_actors.actors.bookkeeper import PAUSE_SECONDS, PIECE, Bookkeeper
from forge_actors.domain.changes import Noted
from forge_actors.domain.cleaning import ClassReport
from forge_actors.domain.errors import StoreFailed, WriterFenced
from forge_actors.domain.events import Event
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.maintenance import ClassVisit
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.made_changes import dispatched, ended, job, repository
from forge_actors.testing.store import MemoryStore
from forge_actors.testing.worktree_rows_contract import worktree

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.mock_clock


@asynccontextmanager
async def keeping(
    store: MemoryStore, *, busy: bool = False, **options: Any
) -> AsyncGenerator[Bookkeeper, None]:
    options.setdefault("visits", {})
    options.setdefault("dry_run", False)
    clock = FakeClock()
    async with (
        store.open(),
        Bookkeeper(store, clock, is_busy=lambda: busy, **options) as books,
    ):
        yield books


async def end_jobs(store: MemoryStore, count: int) -> list[str]:
    await store.save([repository()]).wait()
    names = [f"job{number:04}" for number in range(count)]
    for number, name in enumerate(names, start=1):
        await store.save([job(name)]).wait()
        await store.save([dispatched(name, fence=number)]).wait()
        await store.save([ended(name, fence=number)]).wait()
    return names


async def test_jobs_go_in_small_pieces_with_pauses() -> None:
    store = MemoryStore()
    async with keeping(store) as books:
        names = await end_jobs(store, 3 * PIECE)
        began, commits = trio.current_time(), store.commits
        assert await books.forget_jobs(names) == names
        assert store.commits - commits == 3
        assert trio.current_time() - began >= 3 * PAUSE_SECONDS
        assert store.durable.jobs == {}


async def test_what_must_stay_is_left_out() -> None:
    store = MemoryStore()
    async with keeping(store) as books:
        names = await end_jobs(store, 3)
        await store.save([job("next", after=(names[1],)), job("waits")]).wait()
        asked = [*names, "waits", "never"]
        assert await books.forget_jobs(asked) == [names[0], names[2]]


async def test_a_job_that_ended_just_now_is_left_out() -> None:
    store = MemoryStore()
    async with keeping(store) as books:
        [name] = await end_jobs(store, 1)
        now = FakeClock().wall()
        store._pending.ended_at[name] = now - 59.0
        assert await books.forget_jobs([name]) == []
        store._pending.ended_at[name] = now - 61.0
        assert await books.forget_jobs([name]) == [name]


async def test_events_go_up_to_the_oldest_job_that_has_not_ended() -> None:
    store = MemoryStore()
    async with keeping(store) as books:
        for number in range(6):
            await store.save([Noted(Event("limits", float(number)))]).wait()
        await store.save([repository()]).wait()
        waits = job("waits")
        details = structs.replace(waits.details, created_at=3.0)
        await store.save([structs.replace(waits, details=details)]).wait()
        assert await books.forget_events(1000) == 3
        assert store.history_range()[0] == 4


async def test_events_go_up_to_the_number_that_was_asked_for() -> None:
    store = MemoryStore()
    async with keeping(store) as books:
        for number in range(2 * PIECE + 10):
            await store.save([Noted(Event("limits", float(number)))]).wait()
        assert await books.forget_events(2 * PIECE) == 2 * PIECE - 1
        assert store.history_range()[0] == 2 * PIECE
        assert await books.forget_events(10**9) == 10
        assert store.history_range() == (2 * PIECE + 10, 2 * PIECE + 10)


async def test_a_visit_is_saved_before_it_is_answered() -> None:
    store = MemoryStore()
    before = {"logs": ClassVisit("logs", 5.0, "m", ClassReport("logs", cursor="m"))}
    async with keeping(store, visits=before) as books:
        assert await books.visiting("logs") == "m"
        # The place goes with it: a class that fails there begins anew.
        visit = store.durable.visits["logs"]
        assert (visit.cursor, visit.report) == (None, None)
        await books.visited(ClassReport("logs", removed=2, cursor="n"))
        assert store.durable.visits["logs"].cursor == "n"


async def test_a_size_is_known_until_it_is_another_one() -> None:
    store = MemoryStore()
    async with keeping(store) as books:
        for size, known in [(7, 7), (None, 7), (9, 9)]:
            await books.visiting("logs")
            await books.visited(ClassReport("logs", size=size))
            assert store.durable.visits["logs"].size == known
        await books.visiting("logs")
        assert store.durable.visits["logs"].size == 9


async def test_a_dry_run_saves_nothing() -> None:
    store = MemoryStore()
    async with keeping(store, dry_run=True) as books:
        await books.visited(ClassReport("logs"))
        assert store.durable.visits == {}


async def test_a_full_disk_keeps_nobody_from_visiting() -> None:
    store = MemoryStore()
    async with keeping(store) as books:
        store.failure = StoreFailed("the disk is full")
        assert await books.visiting("logs") is None
        await end_jobs(store, 1)
        store.failure = StoreFailed("the disk is full")
        with pytest.raises(StoreFailed):
            await books.forget_jobs(["job0000"])


async def test_another_owner_of_the_store_does() -> None:
    store = MemoryStore()
    async with keeping(store) as books:
        other = MemoryStore(durable=store.durable)
        other.take_over("other", ProcessIdentity("b", 1, 1), "r", 1.0)
        with pytest.raises(WriterFenced):
            await books.visiting("logs")
        store.durable.owner = None


async def test_what_is_known_of_a_worktree_is_saved_with_its_event() -> None:
    store = MemoryStore()
    async with keeping(store) as books:
        await store.save([repository()]).wait()
        tree = structs.replace(worktree("job"), state="removing")
        await books.record(tree, "saved as a bundle")
        event = store.durable.events[-1]
        assert (event.kind, event.data["reason"]) == (
            "worktree_removing",
            "saved as a bundle",
        )
        assert store.durable.worktrees["job"].state == "removing"


@pytest.mark.parametrize("busy", [True, False])
async def test_a_busy_store_is_not_made_smaller(busy: bool) -> None:
    store = MemoryStore()
    async with keeping(store, busy=busy) as books:
        store.free_bytes = 5
        assert await books.upkeep() == 5
        assert store.upkeeps == (not busy,)
