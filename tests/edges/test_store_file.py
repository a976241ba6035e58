"""The store as a file: what it forbids, who else reads it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
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
from forge_actors.domain.jobs import STATES, TERMINAL
from forge_actors.edges.sqlite import connection
from forge_actors.edges.sqlite.connection import (
    APPLICATION_ID,
    CHECKPOINT_PAGES,
    open_reader,
)
from forge_actors.edges.sqlite.statements import migrations, queries
from forge_actors.edges.sqlite.store import open_store
from forge_actors.testing.made_changes import (
    dispatched,
    ended,
    ended_waiting,
    job,
    ran,
    repository,
)

if TYPE_CHECKING:
    from pathlib import Path


from tests.edges.store_kit import (
    _BECOME_NEWER_AND_DIE,
    ILLEGAL,
    opened,
    path,  # noqa: F401 - a fixture
    reader_sees,
)

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
        assert store.committed.value == store.events(0, 1000)[-1].seq == 3


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
        assert terminal == TERMINAL


@pytest.mark.mock_clock
async def test_a_unique_key_belongs_to_one_active_job(path: Path) -> None:
    async with opened(path) as store:
        await store.save([repository(), job("a"), job("b")]).wait()
        store._db.execute("UPDATE job SET unique_key = 'k' WHERE id = 'a'")
        with pytest.raises(apsw.ConstraintError):
            store._db.execute("UPDATE job SET unique_key = 'k' WHERE id = 'b'")
        await store.save([ended_waiting("a")]).wait()
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
    newest = max(migrations())
    steps = {
        **migrations(),
        newest + 1: "CREATE TABLE second (x); INSERT INTO second VALUES (1);",
        newest + 2: "ALTER TABLE second ADD COLUMN y; UPDATE second SET y = x + 1;",
    }
    async with opened(path) as store:
        await store.save([repository()]).wait()
    failing = "CREATE TABLE fourth (x); CREATE TABLE second (x);"
    broken = {**steps, newest + 3: failing}
    monkeypatch.setattr(connection, "migrations", lambda: broken)
    with pytest.raises(StoreFailed, match="second"):
        async with opened(path):
            pass
    db = apsw.Connection(str(path))
    assert db.execute("PRAGMA user_version").fetchall() == [(newest + 2,)]
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
            numbers = [int(number) for number in re.findall(r"\?(\d+)", text)]
            count = max(numbers, default=text.count("?"))
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
                reader.execute("DELETE FROM history")
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
        ends = [ended("j1", fence=2), ended("j2", state="failed", fence=3)]
        await store.save([ran("j0"), *ends]).wait()
        expected = {"queued": 2, "running": 1, "succeeded": 1, "failed": 1}
        assert store.tally.by_state() == expected
    async with opened(path) as store:
        assert store.tally.by_state() == expected


@pytest.mark.mock_clock
async def test_an_asker_that_left_is_not_told_of_an_end(path: Path) -> None:
    async with opened(path) as store:
        await store.save([repository(), job(), dispatched()]).wait()
        told: list[str] = []
        notify, other = told.append, lambda state: told.append(f"other {state}")
        store.when_ended("job", notify)
        store.when_ended("job", other)
        store.ends.forget("job", notify)
        store.ends.forget("job", notify)
        store.ends.forget("nobody", notify)
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


DYING = """
import os, sys, trio
from pathlib import Path
from forge_actors.edges.sqlite import store

class Dying:
    def __init__(self, db):
        self.db = db

    def __enter__(self):
        return self.db.__enter__()

    def __exit__(self, *error):
        return self.db.__exit__(*error)

    def execute(self, statement, *bindings):
        if statement == sys.argv[2]:
            os._exit(9)
        return self.db.execute(statement, *bindings)

async def main():
    place = Path(sys.argv[1])
    async with store.open_store(
        place, repository_workers=4, overtake_after=1800.0, lasting=True
    ):
        pass

grow = store.grow_log
store.grow_log = lambda db, folder: grow(Dying(db), folder)
trio.run(main)
"""


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO filler VALUES (zeroblob(?))",
        "DROP TABLE filler",
        "PRAGMA wal_checkpoint(RESTART)",
    ],
)
def test_a_start_that_dies_while_the_log_grows_does_not_stop_the_next_one(
    path: Path, statement: str
) -> None:
    died = subprocess.run([sys.executable, "-c", DYING, str(path), statement])
    assert died.returncode == 9

    async def main() -> None:
        async with open_store(
            path, repository_workers=4, overtake_after=1800.0, lasting=True
        ) as store:
            tables = store.reader.execute("SELECT name FROM sqlite_schema").fetchall()
            assert ("filler",) not in tables

    trio.run(main)
