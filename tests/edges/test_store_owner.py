"""Two writers of one store: who is refused, and what of theirs is kept."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import apsw
import pytest
import trio

from forge_actors.domain.errors import StoreFailed, WriterFenced
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.edges.sqlite.connection import BUSY_TIMEOUT_MS, open_reader
from forge_actors.edges.sqlite.guard import Guard
from forge_actors.edges.sqlite.statements import queries
from forge_actors.testing.made_changes import dispatched, ended, job, ran, repository
from tests.edges.store_kit import (
    fill,
    full,
    opened,
    path,  # noqa: F401 - a fixture
    reader_sees,
)

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.ownership import Owner
    from forge_actors.edges.sqlite.store import SqliteStore

PROCESS = ProcessIdentity("boot", 100, 7, 9)
FENCED = "WRITER_FENCED:{}:runtime_instance_fenced"


def take_over(store: SqliteStore, instance: str) -> Owner:
    return store.take_over(instance, PROCESS, "1.0", 5.0)


_TAKE_OVER_AND_DIE = """
import os, signal, sys, trio
from pathlib import Path
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.edges.sqlite.store import open_store

async def main():
    async with open_store(
        Path(sys.argv[1]), repository_workers=1, overtake_after=1.0
    ) as store:
        store.take_over("runtime_dead", ProcessIdentity("b", 1, 2, 3), "1.0", 4.5)
        os.kill(os.getpid(), signal.SIGKILL)

trio.run(main)
"""


async def test_an_owner_that_died_at_once_has_had_its_epoch(path: Path) -> None:
    for _ in range(2):
        words = [sys.executable, "-c", _TAKE_OVER_AND_DIE, str(path)]
        await trio.run_process(words, check=False)
    reader = open_reader(path)
    [row] = reader.execute("SELECT * FROM owner").fetchall()
    reader.close()
    assert row == (1, 2, "runtime_dead", 1, 2, "b", 3, "1.0", 4.5)
    async with opened(path) as store:
        assert take_over(store, "runtime_next").epoch == 3


@pytest.mark.mock_clock
async def test_what_waits_for_space_is_refused_when_the_store_is_lost(
    path: Path,
) -> None:
    async with opened(path) as older, opened(path) as younger:
        take_over(older, "runtime_a")
        await older.save([repository(), job(), dispatched()]).wait()
        async with full(older):
            fill(older)
            owed = [older.save([ran()]), older.save([ended()])]
            assert not any(move.done for move in owed)
            take_over(younger, "runtime_b")
        for move in owed:
            with pytest.raises(WriterFenced):
                await move.wait()
        with pytest.raises(WriterFenced):
            await older.wait_fenced()
        assert [held.state for held in younger.load_jobs("repo")] == ["dispatched"]
        assert older.active == younger.active == 1
        await younger.save([job("next")]).wait()


async def test_a_move_that_was_written_in_time_is_saved_before_the_next_owner_comes(
    path: Path,
) -> None:
    """An open transaction is waited for: nothing in it is lost, nor written after."""
    async with opened(path) as older, opened(path) as younger:
        take_over(older, "runtime_a")
        await older.save([repository()]).wait()
        lazy = older.save([job("early")], lazy=True)
        owner = await trio.to_thread.run_sync(take_over, younger, "runtime_b")
        assert owner.epoch == 2
        await lazy.wait()
        assert reader_sees(path, "early")
        with pytest.raises(WriterFenced, match=FENCED.format("scheduler_write")):
            older.save([job("late")])
        assert not reader_sees(path, "late")


@pytest.mark.mock_clock
async def test_a_bug_in_a_move_of_an_owner_that_was_replaced_harms_nothing(
    path: Path,
) -> None:
    async with opened(path) as older, opened(path) as younger:
        take_over(older, "runtime_a")
        await older.save([repository(), job()]).wait()
        with pytest.raises(apsw.ConstraintError):
            older.save([job()])
        take_over(younger, "runtime_b")
        with pytest.raises(WriterFenced):
            older.save([job()])
        await younger.save([job("next")]).wait()


async def test_a_store_whose_owner_was_removed_is_not_written_to(path: Path) -> None:
    async with opened(path) as store:
        take_over(store, "runtime_a")
        await store.save([repository()]).wait()
        store._db.execute("DELETE FROM owner")
        with pytest.raises(WriterFenced, match="runtime_owner_missing"):
            store.save([job()])


async def test_an_owner_of_the_same_epoch_is_another_one_all_the_same(
    path: Path,
) -> None:
    """As after a store was made anew, which counts from the beginning."""
    async with opened(path) as older, opened(path) as younger:
        assert take_over(older, "runtime_a").epoch == 1
        older._db.execute("DELETE FROM owner")
        assert take_over(younger, "runtime_b").epoch == 1
        with pytest.raises(WriterFenced, match="runtime_instance_fenced"):
            older.save([repository()])
        await younger.save([repository()]).wait()


@pytest.mark.mock_clock
async def test_a_store_that_cannot_be_taken_over_says_why(path: Path) -> None:
    async with opened(path) as store:
        await store.save([repository()]).wait()
        store._db.execute("PRAGMA query_only = 1")
        with pytest.raises(StoreFailed, match=r"nothing can be saved now: .*readonly"):
            take_over(store, "runtime_a")
        store._db.execute("PRAGMA query_only = 0")
        assert take_over(store, "runtime_a").epoch == 1


async def test_somebody_elses_lock_is_waited_for_and_then_told(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(path) as store:
        take_over(store, "runtime_a")
        await store.save([repository(), job(), dispatched()]).wait()
        store._db.set_busy_timeout(1)
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreFailed, match=r"nothing can be saved now: .*locked"):
            store.save([job("new")])
        owed = store.save([ended()])
        assert store.trouble is not None
        other.execute("ROLLBACK")
        other.close()
        await owed.wait()
        assert store.trouble is None


_WRITE = """
import sys
import apsw
from forge_actors.edges.sqlite.guard import Guard
from forge_actors.edges.sqlite.statements import queries

db = apsw.Connection(sys.argv[1])
db.set_busy_timeout(int(sys.argv[2]))
db.execute("PRAGMA synchronous = OFF")
guard = Guard(db, queries())
print("ready", flush=True)
sys.stdin.readline()
for _ in range(1000):
    guard.begin([])
    [(fence,)] = db.execute("SELECT fence FROM repository")
    db.execute("UPDATE repository SET fence = ?", (fence + 1,))
    db.execute("COMMIT")
"""


async def test_two_writers_that_read_and_then_write_never_meet_a_lock(
    path: Path,
) -> None:
    """D-11: a transaction that writes is one from its beginning, so it waits."""
    async with opened(path) as store:
        await store.save([repository()]).wait()
        words = [sys.executable, "-c", _WRITE, str(path), str(BUSY_TIMEOUT_MS)]
        writers = [
            await trio.lowlevel.open_process(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            for _ in range(2)
        ]
        for writer in writers:
            assert writer.stdout is not None
            assert (await writer.stdout.receive_some()).startswith(b"ready")
        for writer in writers:
            assert writer.stdin is not None
            await writer.stdin.send_all(b"go\n")
        assert [await writer.wait() for writer in writers] == [0, 0]
        assert store.load("repo").fence == 2000


def test_a_look_at_the_owner_is_one_statement_more(path: Path) -> None:
    """Nothing is compiled anew for it, and no table is searched."""

    async def main() -> None:
        async with opened(path) as store:
            take_over(store, "runtime_a")

    trio.run(main)
    db = apsw.Connection(str(path))
    guard = Guard(db, queries())
    guard.take_over("runtime_b", PROCESS, "1.0", 5.0)
    steps: list[str] = []
    db.set_profile(lambda statement, _: steps.append(statement))
    for _ in range(3):
        guard.begin([])
        db.execute("COMMIT")
    misses = db.cache_stats()["misses"]
    guard.begin([])
    db.execute("COMMIT")
    assert db.cache_stats()["misses"] == misses
    assert len(steps) == 12
    db.close()
