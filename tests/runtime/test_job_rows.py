"""Filters of jobs: the same rows, however few of many they mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from msgspec.structs import replace

from forge_actors.domain.jobs import Job
from forge_actors.domain.requests import JobQuery
from forge_actors.domain.selection import Selection
from forge_actors.runtime import job_rows
from forge_actors.runtime.job_rows import list_rows, select_ids
from forge_actors.testing.made_changes import dispatched
from tests.runtime.admission_kit import admission, ended

if TYPE_CHECKING:
    from pathlib import Path

    from tests.runtime.admission_kit import Case


async def jobs_of(case: Case) -> list[Job]:
    """Some that wait, one that runs, and some of which each third has failed."""
    made = []
    for number in range(14):
        labels = ["odd"] if number % 2 else []
        kind: Any = "check" if number % 5 == 0 else "repository-command"
        origin = f"o{number % 4}"
        made.append(await case.submit("x", labels=labels, kind=kind, origin=origin))
    for number, job in enumerate(made[:9]):
        state: Any = "succeeded" if number % 3 else "failed"
        await case.store.save([replace(ended(job), state=state)]).wait()
    running = made[9]
    await case.store.save([dispatched(running.id, repo=running.repo)]).wait()
    return made


FILTERS: list[tuple[dict[str, Any], list[int]]] = [
    ({}, list(range(14))),
    ({"state": ["failed"]}, [0, 3, 6]),
    ({"state": ["timed_out"]}, []),
    ({"state": ["succeeded", "dispatched"]}, [1, 2, 4, 5, 7, 8, 9]),
    ({"state": ["dispatched"]}, [9]),
    ({"state": ["running"]}, []),
    ({"state": ["dispatched", "running"], "label": ["odd"]}, [9]),
    ({"state": ["queued"]}, [10, 11, 12, 13]),
    ({"failed": True}, [0, 3, 6]),
    ({"failed": True, "label": ["odd"]}, [3]),
    ({"active": True}, [9, 10, 11, 12, 13]),
    ({"active": True, "origin": ["o1"]}, [9, 13]),
    ({"label": ["odd"]}, [1, 3, 5, 7, 9, 11, 13]),
    ({"label": ["none"]}, []),
    ({"kind": ["check"]}, [0, 5, 10]),
    ({"origin": ["o2", "o3"]}, [2, 3, 6, 7, 10, 11]),
]


@pytest.mark.parametrize("few", [0, 5000])
async def test_a_filter_means_the_same_rows_however_they_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(job_rows, "FIRST_LOOK", 2)
    monkeypatch.setattr(job_rows, "LOOK", 3)
    monkeypatch.setattr(job_rows, "FEW", few)
    async with admission(tmp_path) as case:
        made = await jobs_of(case)
        for wanted, numbers in FILTERS:
            ids = [made[number].id for number in reversed(numbers)]
            selection = Selection(**wanted)
            if selection.names_something:
                assert await select_ids(case.store, selection, [], []) == ids
            some = [made[number].id for number in (1, 3, 9, 12)]
            found = await select_ids(case.store, selection, [], some)
            assert found == [name for name in ids if name in some]
            before, pages = None, []
            while True:
                query = JobQuery(**wanted, limit=2, before=before)
                rows = [row[0] for row in await list_rows(case.store, query, [])]
                pages += rows
                if len(rows) < 2:
                    break
                before = rows[-1]
            assert pages == ids, wanted


async def test_others_have_their_turn_while_many_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_rows, "FIRST_LOOK", 2)
    monkeypatch.setattr(job_rows, "LOOK", 2)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with admission(tmp_path) as case, trio.open_nursery() as nursery:
        await jobs_of(case)
        nursery.start_soon(count)
        await trio.lowlevel.checkpoint()
        before = turns
        assert await list_rows(case.store, JobQuery(label=["none"]), []) == []
        assert turns - before >= 5
        nursery.cancel_scope.cancel()
