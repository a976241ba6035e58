"""The store: one contract for the real and the fake one, and what only a file has."""

from __future__ import annotations

import signal
import sys
from functools import partial
from typing import TYPE_CHECKING

import apsw
import pytest
import trio

from forge_actors.domain.changes import Noted
from forge_actors.domain.errors import (
    StoreFailed,
)
from forge_actors.domain.events import Event
from forge_actors.edges.sqlite import store as store_module
from forge_actors.testing.store import MemoryStore, Rows
from forge_actors.testing.store_contract import (
    CHECKS,
    dispatched,
    ended,
    job,
    ran,
    repository,
)

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.jobs import State
    from forge_actors.testing.store_contract import Check

from tests.edges.store_kit import (
    _SAVE_AND_DIE,
    commits,  # noqa: F401 - a fixture
    fill,
    full,
    opened,
    path,  # noqa: F401 - a fixture
    reader_sees,
)

# The contract


@pytest.mark.mock_clock
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_sqlite_store_keeps_the_contract(check: Check, path: Path) -> None:
    await check(partial(opened, path))


@pytest.mark.mock_clock
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_store_in_memory_keeps_the_contract(check: Check) -> None:
    file = Rows()
    await check(lambda: MemoryStore(durable=file).open())


@pytest.mark.mock_clock
async def test_the_store_in_memory_forgets_what_was_not_durable() -> None:
    async with MemoryStore().open() as store:
        await store.save([repository(), repository("other", inode=9)]).wait()
        store.hold("repo")
        stuck = store.save([job("lost")])
        await store.save([job("kept", "other")]).wait()
        with trio.move_on_after(60) as scope:
            await stuck.wait()
        assert scope.cancelled_caught
        store.crash()
        assert store.load_jobs("repo") == []
        assert [held.id for held in store.load_jobs("other")] == ["kept"]
        store.failure = StoreFailed("for once")
        with pytest.raises(StoreFailed, match="for once"):
            store.save([job("again")])
        await store.save([job("again")]).wait()


# Group commit


@pytest.mark.mock_clock
async def test_many_saves_of_one_moment_share_one_commit(
    path: Path, commits: list[str]
) -> None:
    async with opened(path) as store:
        await store.save([repository()]).wait()
        before = len(commits)

        async def save(number: int) -> None:
            await store.save([job(f"job{number}")]).wait()
            assert reader_sees(path, f"job{number}")

        async with trio.open_nursery() as nursery:
            for number in range(500):
                nursery.start_soon(save, number)
        assert len(commits) == before + 1


@pytest.mark.mock_clock
async def test_what_one_event_sets_off_shares_one_commit(
    path: Path, commits: list[str]
) -> None:
    async with opened(path) as store:
        await store.save([repository()]).wait()
        before = len(commits)
        first = store.save([job("a")])
        for _ in range(3):  # three actors pass it on, each saves
            await trio.lowlevel.checkpoint()
            store.save([Noted(Event("note", 1.0))])
        await first.wait()
        assert len(commits) == before + 1


@pytest.mark.mock_clock
async def test_a_lazy_move_makes_no_commit_of_its_own(
    path: Path, commits: list[str]
) -> None:
    async with opened(path) as store:
        await store.save([repository(), job(), dispatched()]).wait()
        before = len(commits)
        lazy = store.save([ran()], lazy=True)
        await trio.sleep(store_module.LAZY_SECONDS * 0.9)
        assert len(commits) == before
        await store.save([job("other")]).wait()
        assert lazy.done
        assert len(commits) == before + 1
        lazy = store.save([Noted(Event("note", 1.0))], lazy=True)
        began = trio.current_time()
        await lazy.wait()
        assert trio.current_time() - began == pytest.approx(0.25)


@pytest.mark.mock_clock
async def test_what_is_hastened_is_durable_at_once(
    path: Path, commits: list[str]
) -> None:
    async with opened(path) as store:
        await store.save([repository(), job(), dispatched()]).wait()
        before = len(commits)
        lazy = store.save([ran()], lazy=True)
        await trio.testing.wait_all_tasks_blocked()
        store.hasten()
        assert lazy.done
        assert len(commits) == before + 1
        # What comes after it begins anew: lazy moves wait, urgent ones do not.
        lazy = store.save([Noted(Event("note", 1.0))], lazy=True)
        await trio.testing.wait_all_tasks_blocked()
        assert not lazy.done
        began = trio.current_time()
        await store.save([Noted(Event("note", 1.0))]).wait()
        assert lazy.done
        assert trio.current_time() == began
        await store.save([Noted(Event("note", 1.0))], lazy=True).wait()
        assert trio.current_time() - began == pytest.approx(0.25)


async def test_a_commit_that_is_due_is_not_hastened(
    path: Path, commits: list[str]
) -> None:
    async with opened(path) as store:
        await store.save([repository()]).wait()
        before = len(commits)
        urgent = store.save([job("a")])
        store.hasten()
        assert not urgent.done, "others may join it"
        other = store.save([job("b")])
        await urgent.wait()
        assert other.done
        assert len(commits) == before + 1


@pytest.mark.mock_clock
async def test_an_idle_store_commits_nothing(path: Path, commits: list[str]) -> None:
    async with opened(path) as store:
        await store.save([repository()]).wait()
        before = len(commits)
        await trio.sleep(24 * 3600)
        assert len(commits) == before
        assert len(store.events(0, 1000)) == 1


@pytest.mark.mock_clock
async def test_what_was_saved_is_committed_when_the_store_is_left(path: Path) -> None:
    with trio.CancelScope() as scope:
        async with opened(path) as store:
            store.save([repository()])
            store.save([job()], lazy=True)
            scope.cancel()
            await trio.lowlevel.checkpoint()
    async with opened(path) as store:
        assert [held.id for held in store.load_jobs("repo")] == ["job"]


async def test_what_was_acknowledged_survives_a_kill(path: Path) -> None:
    done = await trio.run_process(
        [sys.executable, "-c", _SAVE_AND_DIE, str(path)], check=False
    )
    assert done.returncode == -signal.SIGKILL
    async with opened(path) as store:
        kept = {held.id for held in store.load_jobs("repo")}
        assert kept == {f"kept{number}" for number in range(50)}


async def test_a_commit_waits_for_the_disk(path: Path) -> None:
    async with opened(path) as store:
        assert store._db.execute("PRAGMA synchronous").fetchall() == [(2,)]
        assert store._db.execute("PRAGMA journal_mode").fetchall() == [("wal",)]


@pytest.mark.mock_clock
async def test_a_full_disk_refuses_what_is_new_and_keeps_what_is_owed(
    path: Path,
) -> None:
    async with opened(path) as store:
        for name in ("a", "b"):
            await store.save([repository(name), job(name, name)]).wait()
            await store.save([dispatched(name, name)]).wait()
        told: list[State] = []
        store.when_ended("a", told.append)
        before = store.committed.value
        async with full(store):
            fill(store, "a")
            with pytest.raises(StoreFailed, match=r"nothing can be saved now: .*full"):
                store.save([job("new", "a")])
            with pytest.raises(StoreFailed):
                store.save([repository("c")])
            owed = [store.save([ran("b", "b")], lazy=True)]
            owed.append(store.save([ended("a", "a")]))
            long: dict[str, object] = {"text": "x" * 20_000}  # needs pages of its own
            owed.append(store.save([Noted(Event("long", 1.0, data=long))]))
            await trio.sleep(100)
            assert not any(move.done for move in owed)
            assert told == []
        for move in owed:
            await move.wait()
        assert store.trouble is None
        assert told == ["succeeded"]
        await store.save([job("new", "a")]).wait()
    async with opened(path) as store:
        assert [held.id for held in store.load_jobs("a")] == ["new"]
        [left] = store.load_jobs("b")
        assert left.state == "running"
        events = store.events(before, 100)
        assert [event.kind for event in events] == [
            "job_running",
            "job_succeeded",
            "long",
            "job_queued",
        ]
        assert [event.seq for event in events] == list(range(before + 1, before + 5))


@pytest.mark.mock_clock
async def test_who_waits_when_the_disk_is_full_is_told(path: Path) -> None:
    async with opened(path) as store:
        await store.save([repository(), job(), dispatched()]).wait()
        async with full(store):
            waiting = store.save([job("early")])
            owed = store.save([ran()])
            fill(store)
            with pytest.raises(StoreFailed, match="full"):
                await waiting.wait()
            assert not owed.done
            assert store.load_jobs("repo")[0].state == "dispatched"
        await owed.wait()
        assert [held.id for held in store.load_jobs("repo")] == ["job"]


@pytest.mark.mock_clock
async def test_an_idle_store_notices_that_there_is_space_again(path: Path) -> None:
    async with opened(path) as store:
        await store.save([repository()]).wait()
        async with full(store):
            with pytest.raises(StoreFailed):
                store.save([job("big", after=("x" * 20_000,))])
            await trio.sleep(10)
        await trio.sleep(2 * store_module.RETRY_SECONDS)
        assert store.trouble is None
        await store.save([job()]).wait()


@pytest.mark.mock_clock
async def test_no_reader_is_woken_for_an_event_that_was_refused(path: Path) -> None:
    async with opened(path) as store:
        await store.save([repository()]).wait()
        async with full(store):
            fill(store)
        with trio.move_on_after(10):
            while store.trouble is not None:
                await trio.sleep(0.5)
        assert store.trouble is None
        assert store.committed.value == store.events(0, 1000)[-1].seq
        await store.save([Noted(Event("next", 1.0))]).wait()
        assert store.committed.value == store.events(0, 1000)[-1].seq


@pytest.mark.mock_clock
async def test_a_full_disk_at_the_commit_is_seen_too(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(path) as store:
        await store.save([repository(), job(), dispatched()]).wait()
        full_disk = [True, True, True]

        def refuse() -> bool:
            if full_disk:
                full_disk.pop()
                raise apsw.FullError("database or disk is full")
            return False

        store._db.set_commit_hook(refuse)
        new, owed = store.save([job("new")]), store.save([ended()])
        with pytest.raises(StoreFailed, match="full"):
            await new.wait()
        assert not owed.done
        await owed.wait()
        assert full_disk == []
        assert store.load_jobs("repo") == []
