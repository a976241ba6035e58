"""The store: one contract for the real and the fake one, and what only a file has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import apsw
import pytest
import trio

from forge_actors.domain.changes import Noted
from forge_actors.domain.errors import (
    NotFound,
    Refused,
    StoreFailed,
    StoreFromTheFuture,
)
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import STATES
from forge_actors.edges.sqlite import connection
from forge_actors.edges.sqlite import store as store_module
from forge_actors.edges.sqlite.connection import (
    APPLICATION_ID,
    CHECKPOINT_PAGES,
    open_reader,
)
from forge_actors.edges.sqlite.statements import migrations, queries
from forge_actors.edges.sqlite.store import SqliteStore, open_store
from forge_actors.testing.store import MemoryStore
from forge_actors.testing.store_contract import (
    CHECKS,
    dispatched,
    ended,
    job,
    ran,
    repository,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from forge_actors.domain.jobs import State
    from forge_actors.testing.store_contract import Check


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[SqliteStore, None]:
    async with open_store(path, repository_workers=4, overtake_after=1800.0) as store:
        yield store


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each commit of a writing connection opened from here on."""
    made: list[str] = []
    prepare = connection._prepare

    def watched(db: apsw.Connection, path: Path) -> None:
        prepare(db, path)
        db.set_commit_hook(lambda: bool(made.append("commit")))

    monkeypatch.setattr(connection, "_prepare", watched)
    return made


# The contract


@pytest.mark.mock_clock
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_sqlite_store_keeps_the_contract(check: Check, path: Path) -> None:
    await check(partial(opened, path))


@pytest.mark.mock_clock
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_store_in_memory_keeps_the_contract(check: Check) -> None:
    await check(MemoryStore().open)


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
async def test_an_idle_store_commits_nothing(path: Path, commits: list[str]) -> None:
    async with opened(path) as store:
        await store.save([repository()]).wait()
        before = len(commits)
        await trio.sleep(24 * 3600)
        assert len(commits) == before
        assert store.read("last_event")[0][0] == 1


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


def reader_sees(path: Path, job_id: str) -> bool:
    reader = open_reader(path)
    try:
        query = "SELECT count(*) FROM job WHERE id = ?"
        return reader.execute(query, (job_id,)).fetchall() == [(1,)]
    finally:
        reader.close()


_SAVE_AND_DIE = """
import os, signal, sys, trio
from pathlib import Path
from forge_actors.edges.sqlite.store import open_store
from forge_actors.testing.store_contract import job, repository

async def main():
    async with open_store(
        Path(sys.argv[1]), repository_workers=1, overtake_after=1.0
    ) as store:
        await store.save([repository()]).wait()
        for number in range(50):
            await store.save([job(f"kept{number}")]).wait()
        store.save([job("unanswered")])
        os.kill(os.getpid(), signal.SIGKILL)

trio.run(main)
"""


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


# A full disk


@asynccontextmanager
async def full(store: SqliteStore) -> AsyncGenerator[None, None]:
    """No room for another page while the block lasts."""
    [(pages,)] = store._db.execute("PRAGMA page_count").fetchall()
    store._db.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    try:
        yield
    finally:
        store._db.execute("PRAGMA max_page_count = 1000000").fetchall()


def fill(store: SqliteStore, repo: str = "repo") -> None:
    """Save until the disk takes no more."""
    with suppress(StoreFailed):
        for number in range(10_000):
            store.save([job(f"filler{number}", repo, after=("x" * 500,))])
    assert store.trouble is not None


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
        before = store.read("last_event")[0][0]
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
        rows = store.read("events_after", before, 100)
        assert [row[2] for row in rows] == [
            "job_running",
            "job_succeeded",
            "long",
            "job_queued",
        ]
        assert [row[0] for row in rows] == list(range(before + 1, before + 5))


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
        assert store.committed.value == store.read("last_event")[0][0]
        await store.save([Noted(Event("next", 1.0))]).wait()
        assert store.committed.value == store.read("last_event")[0][0]


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


# What the file itself forbids


@pytest.mark.mock_clock
async def test_a_move_is_saved_whole_or_not_at_all(path: Path) -> None:
    async with opened(path) as store:
        await store.save([repository(), job()]).wait()
        with pytest.raises(apsw.ConstraintError):
            store.save([job("fresh"), job("job")])
        after = store.save([Noted(Event("after", 1.0))])
        await after.wait()
        assert [held.id for held in store.load_jobs("repo")] == ["job"]
        assert store.committed.value == store.read("last_event")[0][0] == 3


ILLEGAL = {
    "an unknown state": "UPDATE job SET state = 'sleeping'",
    "an end without a time": "UPDATE job SET state = 'failed'",
    "a time without an end": "UPDATE job SET finished_at = 5.0",
    "running without a fence": "UPDATE job SET state = 'running', attempt = 1",
    "dispatched without an attempt": (
        "UPDATE job SET state = 'dispatched', fence = 1, dispatched_at = 1.0"
    ),
    "an unknown priority": "UPDATE job SET priority = 5",
    "an unknown replay": "UPDATE job SET replay = 'often'",
    "no attempts": "UPDATE job SET max_attempts = 0",
    "text for a number": "UPDATE job SET priority = 'high'",
    "a repository that is not there": "UPDATE job SET repo = 'elsewhere'",
    "a negative fence": "UPDATE repository SET fence = -1",
    "half enabled": "UPDATE repository SET enabled = 2",
    "a second job of an id": "INSERT INTO job SELECT * FROM job",
    "a second repository of a name": (
        "INSERT INTO repository SELECT 'r2', name, path, common_dir, device, 99,"
        " enabled, added_at, NULL, 0, 0 FROM repository"
    ),
    "a second repository of a folder": (
        "INSERT INTO repository SELECT 'r2', 'other', path, common_dir, device, inode,"
        " enabled, added_at, NULL, 0, 0 FROM repository"
    ),
    "a repository gone, its jobs left": "DELETE FROM repository",
}


@pytest.mark.parametrize("statement", ILLEGAL.values(), ids=ILLEGAL.keys())
async def test_an_illegal_row_is_impossible(path: Path, statement: str) -> None:
    async with opened(path) as store:
        await store.save([repository(), job()]).wait()
        with pytest.raises(apsw.ConstraintError):
            store._db.execute(statement)


async def test_the_states_of_the_schema_are_those_of_the_domain(path: Path) -> None:
    async with opened(path) as store:
        await store.save([repository(), job()]).wait()
        terminal = set()
        for state in STATES:
            row = "state = ?, attempt = 1, fence = 1, dispatched_at = 1.0"
            try:
                store._db.execute(f"UPDATE job SET {row}", (state,))
            except apsw.ConstraintError:
                terminal.add(state)
                store._db.execute(f"UPDATE job SET {row}, finished_at = 1.0", (state,))
                store._db.execute("UPDATE job SET state='queued', finished_at = NULL")
        assert terminal == store_module.TERMINAL


@pytest.mark.mock_clock
async def test_a_unique_key_belongs_to_one_active_job(path: Path) -> None:
    async with opened(path) as store:
        await store.save([repository(), job("a"), job("b")]).wait()
        store._db.execute("UPDATE job SET unique_key = 'k' WHERE id = 'a'")
        with pytest.raises(apsw.ConstraintError):
            store._db.execute("UPDATE job SET unique_key = 'k' WHERE id = 'b'")
        await store.save([ended("a")]).wait()
        store._db.execute("UPDATE job SET unique_key = 'k' WHERE id = 'b'")


# Other files


async def test_a_store_from_the_future_is_left_untouched(path: Path) -> None:
    async with opened(path) as store:
        await store.save([repository(), job()]).wait()
        newest = max(migrations())
        store._db.execute(f"PRAGMA user_version = {newest + 1}")
    before = path.read_bytes()
    with pytest.raises(
        StoreFromTheFuture, match=f"schema {newest + 1}.*up to {newest}"
    ):
        async with opened(path):
            pass
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


_BECOME_NEWER_AND_DIE = """
import apsw, os, signal, sys
db = apsw.Connection(sys.argv[1])
db.execute("PRAGMA user_version = 99")
db.execute("CREATE TABLE novelty (x)")
os.kill(os.getpid(), signal.SIGKILL)
"""


async def test_a_crashed_store_from_the_future_is_left_untouched(path: Path) -> None:
    async with opened(path):
        pass
    await trio.run_process(
        [sys.executable, "-c", _BECOME_NEWER_AND_DIE, str(path)], check=False
    )
    log = path.with_name(path.name + "-wal")
    before = path.read_bytes(), log.read_bytes()
    assert before[1], "the newer release left its last words in the log"
    with pytest.raises(StoreFromTheFuture):
        async with opened(path):
            pass
    assert (path.read_bytes(), log.read_bytes()) == before


async def test_the_database_of_another_program_is_refused(path: Path) -> None:
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE bookmark (url)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreFailed, match="another program"):
        async with opened(path):
            pass
    assert path.read_bytes() == before


async def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_bytes(b"my diary, page one\n" * 100)
    with pytest.raises(StoreFailed, match="cannot be opened"):
        async with opened(path):
            pass
    assert path.read_bytes() == b"my diary, page one\n" * 100


async def test_a_folder_that_is_not_there_is_refused(path: Path) -> None:
    with pytest.raises(StoreFailed, match="cannot be opened"):
        async with opened(path / "nowhere"):
            pass


async def test_the_store_is_for_its_owner_alone(path: Path) -> None:
    old = os.umask(0)
    try:
        async with opened(path) as store:
            await store.save([repository()]).wait()
            for entry in path.parent.iterdir():
                assert entry.stat().st_mode & 0o777 == 0o600, entry.name
    finally:
        os.umask(old)


async def test_migrations_are_applied_in_order_each_in_its_own_transaction(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = {
        **migrations(),
        2: "CREATE TABLE second (x); INSERT INTO second VALUES (1);",
        3: "ALTER TABLE second ADD COLUMN y; UPDATE second SET y = x + 1;",
    }
    async with opened(path) as store:
        await store.save([repository()]).wait()
    broken = {**steps, 4: "CREATE TABLE fourth (x); CREATE TABLE second (x);"}
    monkeypatch.setattr(connection, "migrations", lambda: broken)
    with pytest.raises(StoreFailed, match="second"):
        async with opened(path):
            pass
    db = apsw.Connection(str(path))
    assert db.execute("PRAGMA user_version").fetchall() == [(3,)]
    assert (
        db.execute("SELECT name FROM sqlite_schema WHERE name = 'fourth'").fetchall()
        == []
    )
    db.close()
    monkeypatch.setattr(connection, "migrations", lambda: steps)
    async with opened(path) as store:
        assert store._db.execute("SELECT x, y FROM second").fetchall() == [(1, 2)]
        assert store.repositories()[0].name == "repo"
        [(owner,)] = store._db.execute("PRAGMA application_id").fetchall()
        assert owner == APPLICATION_ID


async def test_every_statement_is_valid(path: Path) -> None:
    async with opened(path) as store:
        for name, text in queries().items():
            count = (text.count("?1") and 1) or text.count("?")
            store._db.execute(f"EXPLAIN {text}", (None,) * count).fetchall()
            assert text, name


async def test_the_numbers_of_the_migrations_have_no_gap() -> None:
    assert sorted(migrations()) == list(range(1, len(migrations()) + 1))


# Readers


@pytest.mark.mock_clock
async def test_two_readers_see_only_what_is_committed(path: Path) -> None:
    async with opened(path) as store:
        await store.save([repository()]).wait()
        saved = store.save([job()])
        assert store.read_pending("job_state", "job") == [("queued",)]
        assert store.read("job_state", "job") == []
        assert not reader_sees(path, "job")
        await saved.wait()
        assert store.read("job_state", "job") == [("queued",)]
        assert reader_sees(path, "job")


async def test_a_reader_cannot_write(path: Path) -> None:
    async with opened(path) as store:
        for reader in (store.reader, open_reader(path)):
            with pytest.raises(apsw.ReadOnlyError):
                reader.execute("DELETE FROM event")
            if reader is not store.reader:
                reader.close()


async def test_a_reader_in_the_middle_of_a_query_delays_no_commit(path: Path) -> None:
    async with opened(path) as store:
        await store.save([repository(), job("a"), job("b")]).wait()
        reader = open_reader(path)
        rows = reader.execute("SELECT id FROM job ORDER BY id")
        assert next(rows) == ("a",)
        await store.save([job("c")]).wait()
        assert [row[0] for row in rows] == ["b"]
        reader.close()


@pytest.mark.mock_clock
async def test_a_selector_is_an_id_or_a_unique_prefix_or_tail(path: Path) -> None:
    async with opened(path) as store:
        ids = ["0aaaaaaaaaaaaaaxyz1", "0aaaaaaaaaaaaabxyz2", "0bbbbbbbbbbbbbbxyz1"]
        await store.save([repository(), *map(job, ids)]).wait()
        assert store.match(ids[0]) == ids[0]
        assert store.match("0bbb") == ids[2]
        assert store.match("xyz2") == ids[1]
        with pytest.raises(Refused, match=f"{ids[0]}, {ids[1]}"):
            store.match("0aaaa")
        with pytest.raises(Refused):
            store.match("xyz1")
        for nothing in ("0bb", "zzzz", "%bbb", "", "0bbb'", "0BBB"):
            with pytest.raises(NotFound):
                store.match(nothing)


@pytest.mark.mock_clock
async def test_counts_include_every_state(path: Path) -> None:
    async with opened(path) as store:
        await store.save([repository(), *(job(f"j{n}") for n in range(5))]).wait()
        for number in range(3):
            await store.save([dispatched(f"j{number}", fence=number + 1)]).wait()
        await store.save([ran("j0"), ended("j1"), ended("j2", state="failed")]).wait()
        expected = {"queued": 2, "running": 1, "succeeded": 1, "failed": 1}
        assert store.counts() == expected
    async with opened(path) as store:
        assert store.counts() == expected


@pytest.mark.mock_clock
async def test_an_asker_that_left_is_not_told_of_an_end(path: Path) -> None:
    async with opened(path) as store:
        await store.save([repository(), job(), dispatched()]).wait()
        told: list[str] = []
        notify, other = told.append, lambda state: told.append(f"other {state}")
        store.when_ended("job", notify)
        store.when_ended("job", other)
        store.forget_end("job", notify)
        store.forget_end("job", notify)
        store.forget_end("nobody", notify)
        await store.save([ended()]).wait()
        assert told == ["other succeeded"]


def test_the_store_can_be_read_by_the_tools_of_sqlite(path: Path) -> None:
    """`sqlite3` of the standard library opens it: the schema is plain SQL."""
    code = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute("
    code += "'SELECT count(*) FROM job').fetchall())"

    async def main() -> None:
        async with opened(path) as store:
            await store.save([repository(), job()]).wait()

    trio.run(main)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True
    )
    assert done.stdout == "[(1,)]\n", done.stderr


async def test_a_lasting_store_has_its_log_ready_and_nothing_else(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.sqlite"
    async with open_store(
        path, repository_workers=4, overtake_after=1800.0, lasting=True
    ) as store:
        log = tmp_path / "store.sqlite-wal"
        size = log.stat().st_size
        assert size > CHECKPOINT_PAGES * 4096
        tables = store.reader.execute("SELECT name FROM sqlite_schema").fetchall()
        assert ("filler",) not in tables
        await store.save([Noted(Event("x", 1.0))]).wait()
        assert log.stat().st_size == size
        free = store.reader.execute("PRAGMA freelist_count").fetchall()
        assert free[0][0] >= CHECKPOINT_PAGES
