"""A full disk is said once when it begins and once when it is over."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.errors import StoreFailed
from forge_actors.testing import epics_contract, workflows_contract
from forge_actors.testing.store_contract import job, repository
from tests.edges.store_kit import fill, full, opened
from tests.edges.store_kit import path as path  # a fixture

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.mock_clock
async def test_a_full_disk_is_logged_once_however_much_is_refused(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with opened(path) as store:
        await store.save([repository()]).wait()
        async with full(store):
            fill(store)
            for number in range(20):
                with pytest.raises(StoreFailed):
                    store.save([job(f"refused{number}")])
            with pytest.raises(StoreFailed):
                store.save([workflows_contract.added("refused")])
            with pytest.raises(StoreFailed):
                store.save([epics_contract.began("refused")])
            over = store.save([epics_contract.over("refused")])
            assert [record.getMessage() for record in caplog.records] == [
                "nothing can be saved now: database or disk is full"
            ]
        await store.saving.wait_value(True)
        await store.save([job("accepted")]).wait()
        await over.wait()
    assert [record.getMessage() for record in caplog.records][1:] == [
        "everything is saved again"
    ]
