"""The upkeep of a store's file: what is given back, and that nobody waits for it."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from forge_actors.domain.changes import (
    CleanRunChanged,
    EventsForgotten,
    JobsForgotten,
    Noted,
)
from forge_actors.domain.errors import StoreFailed, WriterFenced
from forge_actors.domain.events import Event
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.maintenance import CleanRun
from forge_actors.edges.sqlite import forgetting, upkeep
from forge_actors.testing.made_changes import dispatched, ended, job, repository
from tests.edges.store_kit import opened, path  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.edges.sqlite.store import SqliteStore

MANY = 600


async def fill(store: SqliteStore, jobs: int = MANY) -> list[str]:
    """Ended jobs that take a few megabytes."""
    await store.save([repository()]).wait()
    names = [f"job{number:06}" for number in range(jobs)]
    for number, name in enumerate(names, start=1):
        event = Event("limits", 1.0, data={"filler": "x" * 10_000})
        store.save([job(name), Noted(event)])
        store.save([dispatched(name, fence=number), ended(name, fence=number)])
    await store.save([]).wait()
    return names


async def forget(store: SqliteStore, names: list[str]) -> None:
    async with store.forgetting():
        found = store.forgettable(names, 1000.0)
        await store.save([JobsForgotten(found, 1000.0)]).wait()
    await store.save([EventsForgotten(store.history_range()[1])]).wait()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vacuum is worth it from one megabyte on."""
    monkeypatch.setattr(upkeep, "WORTH_BYTES", 1 << 20)


async def test_free_pages_are_given_back(path: Path, small: None) -> None:
    async with opened(path) as store:
        names = await fill(store)
        await store.upkeep(may_vacuum=False)  # out of the log, into the file
        await forget(store, names)
        before = path.stat().st_size
        assert await store.upkeep(may_vacuum=True) > 1 << 20
        assert path.stat().st_size < before - (4 << 20)
        await store.save([job("new")]).wait()
        assert store.tally.by_state() == {"queued": 1}
    async with opened(path) as store:
        assert store.read("job_state", "new") == [("queued",)]


async def test_while_jobs_wait_or_run_the_file_keeps_its_size(
    path: Path, small: None
) -> None:
    async with opened(path) as store:
        names = await fill(store)
        await store.upkeep(may_vacuum=False)  # out of the log, into the file
        await forget(store, names)
        before = path.stat().st_size
        await store.upkeep(may_vacuum=False)
        assert path.stat().st_size >= before


async def test_few_free_pages_are_not_worth_it(path: Path) -> None:
    async with opened(path) as store:
        names = await fill(store)
        await store.upkeep(may_vacuum=False)  # out of the log, into the file
        await forget(store, names)
        before = path.stat().st_size
        await store.upkeep(may_vacuum=True)
        assert path.stat().st_size >= before


async def test_a_vacuum_is_broken_off_by_whoever_saves(
    path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow(upkeep.Vacuum):
        def run(self) -> None:
            begun.set()
            go_on.wait(10)
            super().run()

        def break_off(self) -> None:
            super().break_off()
            go_on.set()

    monkeypatch.setattr(upkeep, "Vacuum", Slow)
    async with opened(path) as store:
        names = await fill(store)
        await store.upkeep(may_vacuum=False)  # out of the log, into the file
        await forget(store, names)
        before = path.stat().st_size
        async with trio.open_nursery() as nursery:
            vacuum: Any = store.upkeep
            nursery.start_soon(lambda: vacuum(may_vacuum=True))
            await trio.to_thread.run_sync(begun.wait)
            await store.save([job("urgent")]).wait()
        assert path.stat().st_size >= before
        assert store.read("job_state", "urgent") == [("queued",)]


async def test_what_is_saved_during_a_vacuum_is_saved_in_its_order_after_it(
    path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, go_on = threading.Event(), threading.Event()

    class Complete(upkeep.Vacuum):
        """One that cannot be broken off any more."""

        def run(self) -> None:
            super().run()
            self.ended.clear()
            done.set()
            go_on.wait(10)
            self.ended.set()

    monkeypatch.setattr(upkeep, "Vacuum", Complete)
    async with opened(path) as store:
        await forget(store, await fill(store, 300))
        async with trio.open_nursery() as nursery:
            vacuum: Any = store.upkeep
            nursery.start_soon(lambda: vacuum(may_vacuum=True))
            await trio.to_thread.run_sync(done.wait)
            told: list[str] = []
            for name in ("a", "b"):
                store.save([job(name)], then=partial(told.append, name))
            twice = store.save([job("a")])  # refused by the file, and by it alone
            nursery.start_soon(store.quiet)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert told == []
            assert store.read("job_state", "a") == []
            go_on.set()
            with pytest.raises(StoreFailed, match="could not be saved"):
                await twice.wait()
        await store.save([]).wait()
        assert told == ["a", "b"]
        assert store.tally.by_state() == {"queued": 2}
        assert store.active == 2


async def test_the_last_event_stays_whatever_is_asked_for(path: Path) -> None:
    async with opened(path) as store:
        for number in range(3):
            await store.save([Noted(Event("limits", float(number)))]).wait()
        await store.save([EventsForgotten(1000)]).wait()
        assert [event.seq for event in store.events(0, 10)] == [3]
        await store.save([Noted(Event("limits", 9.0))]).wait()
        assert [event.seq for event in store.events(0, 10)] == [3, 4]


async def test_of_the_jobs_that_went_the_newest_are_remembered(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "KEPT_IN_MIND", 2)
    async with opened(path) as store:
        await forget(store, await fill(store, 5))
        await store.save([CleanRunChanged(CleanRun(1.0, ended_at=2.0))]).wait()
        told = [str(store.not_found(f"job00000{number}")) for number in range(5)]
        assert ["removed by retention" in each for each in told] == [
            *([False] * 3),
            *([True] * 2),
        ]


async def test_the_store_of_another_runtime_is_left_alone(path: Path) -> None:
    process = ProcessIdentity("boot", 1, 1)
    async with opened(path) as late, opened(path) as newer:
        late.take_over("late", process, "r", 1.0)
        await late.save([repository()]).wait()
        newer.take_over("newer", process, "r", 2.0)
        with pytest.raises(WriterFenced, match="cleanup"):
            late.save([EventsForgotten(1)])
        with pytest.raises(WriterFenced):
            await late.upkeep(may_vacuum=True)
