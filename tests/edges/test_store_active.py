"""The count of active jobs, kept in memory, is that of the rows at every moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw
import pytest

from forge_actors.domain.errors import StoreFailed
from forge_actors.testing.store_contract import dispatched, ended, job, repository
from tests.edges.store_kit import fill, full, opened, path

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.edges.sqlite.store import SqliteStore

__all__ = ["path"]


def rows(store: SqliteStore) -> int:
    [(count,)] = store.read_pending("active_total")
    return int(count)


async def test_jobs_count_from_when_they_are_saved_until_their_end_is_durable(
    path: Path,
) -> None:
    async with opened(path) as store:
        store.save([repository(), job("a"), job("b")])
        assert store.active == rows(store) == 2
        await store.save([dispatched("a")]).wait()
        end = store.save([ended("a")])
        assert store.active == 2
        await end.wait()
        assert store.active == rows(store) == 1
    async with opened(path) as store:
        assert store.active == 1


async def test_a_save_that_fails_counts_nothing(path: Path) -> None:
    async with opened(path) as store:
        await store.save([repository(), job("a")]).wait()
        saved = store.save([job("b")])
        with pytest.raises(apsw.ConstraintError):
            store.save([job("c"), job("a")])
        assert store.active == rows(store) == 2
        await saved.wait()
        assert store.active == rows(store) == 2


@pytest.mark.mock_clock
async def test_jobs_that_a_full_disk_refuses_count_no_more(path: Path) -> None:
    async with opened(path) as store:
        await store.save([repository(), job("a"), dispatched("a"), job("b")]).wait()
        async with full(store):
            refused = store.save([job("c")])
            fill(store)
            with pytest.raises(StoreFailed):
                await refused.wait()
            assert store.active == 2
            owed = store.save([ended("a")])
            assert store.active == 2
        await owed.wait()
        assert store.active == rows(store) == 1
