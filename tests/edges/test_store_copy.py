"""Copies of a store: of one moment, whole, for its owner alone; or none at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import apsw
import pytest
import trio

from forge_actors.domain.errors import (
    StoreDamaged,
    StoreFailed,
    StoreFromTheFuture,
)
from forge_actors.edges.sqlite import copying
from forge_actors.edges.sqlite.copying import copy_store
from forge_actors.edges.sqlite.store import open_store
from forge_actors.testing.store_contract import dispatched, ended, job, repository
from tests.edges.store_kit import opened
from tests.edges.store_kit import path as path  # a fixture

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def target(path: Path) -> Path:
    folder = path.parent / "elsewhere"
    folder.mkdir()
    return folder / "copy.sqlite"


def ids(path: Path) -> list[str]:
    db = apsw.Connection(str(path))
    try:
        return [row[0] for row in db.execute("SELECT id FROM job ORDER BY id")]
    finally:
        db.close()


async def test_a_copy_is_of_one_moment_while_the_store_is_written_to(
    path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writers are not held up, and the copy does not begin again for each of them."""
    monkeypatch.setattr(copying, "STEP_PAGES", 1)
    async with opened(path) as store:
        jobs = [job(f"old{number:04}") for number in range(500)]
        await store.save([repository(), *jobs]).wait()
        copied = trio.Event()
        meanwhile = 0

        async def copy() -> None:
            await trio.to_thread.run_sync(copy_store, path, target)
            copied.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(copy)
            while not copied.is_set():
                await store.save([job(f"new{meanwhile:06}")]).wait()
                meanwhile += 1
    assert meanwhile > 1
    found = ids(target)
    assert [name for name in found if name < "old"] == [
        f"new{number:06}" for number in range(len(found) - 500)
    ]
    assert [name for name in found if name >= "old"] == [
        held for held in ids(path) if held >= "old"
    ]


async def test_a_copy_tells_what_is_in_it_and_is_one_private_file(
    path: Path, target: Path
) -> None:
    async with open_store(
        path, repository_workers=4, overtake_after=1800.0, lasting=True
    ) as store:
        await store.save([repository(), job("a"), job("b"), job("c")]).wait()
        await store.save([dispatched("a"), dispatched("b", fence=2)]).wait()
        await store.save([ended("a")]).wait()
        contents = copy_store(path, target)
    assert contents[2:] == (1, 1, 1, 1)
    assert contents.size == target.stat().st_size
    assert target.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in target.parent.iterdir()] == [target.name]
    # The room that a store keeps for its log is not copied.
    assert contents.size * 10 < path.stat().st_size


async def test_what_a_crash_left_in_the_log_is_copied(path: Path, target: Path) -> None:
    async with opened(path) as store:
        await store.save([repository(), job("kept")]).wait()
        for suffix in ("", "-wal"):
            left = path.with_name(f"left.sqlite{suffix}")
            left.write_bytes(path.with_name(f"{path.name}{suffix}").read_bytes())
    left = path.with_name("left.sqlite")
    copy_store(left, target)
    assert ids(target) == ["kept"]


async def test_a_store_that_cannot_be_copied_leaves_no_file(
    path: Path, target: Path
) -> None:
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE bookmark (url)")
    with pytest.raises(StoreFailed, match="no store of forge-actors"):
        copy_store(path, target)
    other.execute(f"PRAGMA application_id = {copying.APPLICATION_ID}")
    other.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreFromTheFuture, match="schema 99"):
        copy_store(path, target)
    other.close()
    path.write_bytes(b"my diary\n" * 1000)
    with pytest.raises(StoreDamaged):
        copy_store(path, target)
    with pytest.raises(StoreFailed, match="No such file"):
        copy_store(path.with_name("nothing"), target)
    assert not list(target.parent.iterdir())


async def test_a_damaged_store_is_not_copied(path: Path, target: Path) -> None:
    async with opened(path) as store:
        await store.save([repository(), *(job(f"job{n}") for n in range(300))]).wait()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2 // 4096 * 4096)
        file.write(bytes(4096))
    with pytest.raises(StoreDamaged):
        copy_store(path, target)
    assert not list(target.parent.iterdir())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
async def test_a_folder_that_is_full_or_gone_is_named(path: Path) -> None:
    async with opened(path) as store:
        await store.save([repository()]).wait()
        target = path.parent / "gone" / "copy.sqlite"
        with pytest.raises(StoreFailed, match=f"{target}: No such file"):
            copy_store(path, target)
