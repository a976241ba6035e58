"""The runs of EPICs of a restored home."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.history import History
from forge_actors.testing.epics_contract import began, over
from forge_actors.testing.store_contract import repository
from tests.runtime.test_restore import backup, opened, put_back, saved

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "logs").mkdir(parents=True)
    (tmp_path / "home" / "receipts").mkdir()
    return tmp_path / "home"


async def test_runs_are_as_they_were_last(home: Path) -> None:
    await saved(home, repository(), began("1a", "first"), began("1b"))
    file = backup(home)
    await saved(home, over("1a", "first"), began("1c", "later"))
    put_back(home, file)
    async with opened(home) as store:
        assert store.active_epics() == ["1b", "1c"]
        assert store.epic("1a") == over("1a", "first").body
        assert store.epic_of_request("later") == "1c"
        history, events = History(), store.events(0, 10_000)
        [anew] = [e.seq for e in events if e.kind == "store_restored"]
        for event in events:
            if event.seq >= anew:
                history.apply(event)
