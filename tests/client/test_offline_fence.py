"""A home that nothing serves still says who holds a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.client import offline_home
from forge_actors.client.home import STORE
from forge_actors.domain.changes import JobHeld, PauseBegan, PauseEnded
from forge_actors.domain.errors import StoreFailed, Unavailable
from forge_actors.domain.events import Event
from forge_actors.domain.scopes import Pause
from forge_actors.edges.sqlite.store import open_store
from forge_actors.testing.made_changes import (
    dispatched,
    ended,
    job,
    ran,
    repository,
    requeued,
)

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.changes import Change

CURRENT = (True, None)
STALE = (False, "FENCING_TOKEN_STALE")
PAUSED = (False, "PAUSED")


async def save(home: Path, *changes: Change) -> None:
    async with open_store(
        home / STORE, repository_workers=1, overtake_after=1.0
    ) as store:
        await store.save(changes).wait()


def check(home: Path, attempt: int, fence: int) -> tuple[bool, str | None]:
    told: dict[str, Any] = offline_home.check_fence(str(home), "job", attempt, fence)
    return told["current"], told["code"]


async def test_the_store_tells_who_holds_a_job(tmp_path: Path) -> None:
    await save(tmp_path, repository(), job())
    assert check(tmp_path, 1, 1) == STALE
    for change in (dispatched(), ran()):
        await save(tmp_path, change)
        assert check(tmp_path, 1, 1) == CURRENT
        assert check(tmp_path, 1, 2) == check(tmp_path, 2, 1) == STALE
    await save(tmp_path, requeued())
    assert check(tmp_path, 1, 1) == STALE
    await save(tmp_path, dispatched(attempt=2, fence=2))
    assert (check(tmp_path, 1, 1), check(tmp_path, 2, 2)) == (STALE, CURRENT)
    await save(tmp_path, ended(attempt=2, fence=2))
    assert check(tmp_path, 2, 2) == STALE


async def test_what_is_suspended_does_not_hold_its_job(tmp_path: Path) -> None:
    await save(tmp_path, repository(), job(), dispatched(), ran())
    for since, told in ((5.0, PAUSED), (None, CURRENT)):
        event = Event("job_paused", 5.0, "repo", "job")
        await save(tmp_path, JobHeld("job", since, event))
        assert check(tmp_path, 1, 1) == told
    for scope in ("all", "repo:repo"):
        event = Event("paused", 5.0)
        await save(tmp_path, PauseBegan(Pause(scope, 5.0), event))
        assert check(tmp_path, 1, 1) == CURRENT  # what runs there goes on
        await save(tmp_path, PauseBegan(Pause(scope, 5.0, jobs=True), event))
        assert check(tmp_path, 1, 1) == PAUSED
        await save(tmp_path, PauseEnded(scope, Event("resumed", 6.0)))
    await save(tmp_path, PauseBegan(Pause("repo:other", 5.0, jobs=True), event))
    assert check(tmp_path, 1, 1) == CURRENT


async def test_nothing_is_said_of_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        check(tmp_path, 1, 1)
    (tmp_path / STORE).write_bytes(b"x" * 5000)
    with pytest.raises(StoreFailed):
        check(tmp_path, 1, 1)
