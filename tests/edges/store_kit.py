"""What the tests of store share."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import apsw
import pytest

from forge_actors.domain.errors import (
    StoreFailed,
)
from forge_actors.edges.sqlite import connection
from forge_actors.edges.sqlite.connection import (
    open_reader,
)
from forge_actors.edges.sqlite.store import SqliteStore, open_store
from forge_actors.testing.store_contract import (
    job,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path


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


_BECOME_NEWER_AND_DIE = """
import apsw, os, signal, sys
db = apsw.Connection(sys.argv[1])
db.execute("PRAGMA user_version = 99")
db.execute("CREATE TABLE novelty (x)")
os.kill(os.getpid(), signal.SIGKILL)
"""
