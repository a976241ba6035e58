"""A home that nothing serves shows the same jobs as its runtime did."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import apsw
import pytest

from forge_actors.client import offline
from forge_actors.client.home import STORE
from forge_actors.domain.errors import (
    NotFound,
    Refused,
    StoreFromTheFuture,
    Unavailable,
)
from forge_actors.domain.requests import JobQuery
from forge_actors.edges.sqlite.statements import migrations
from forge_actors.runtime.runtime import STORE_FILE, open_runtime
from forge_actors.runtime.views import as_json

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


async def test_the_jobs_read_as_they_did_from_the_runtime(
    tmp_path: Path, repository: Path
) -> None:
    home = tmp_path / "home"
    async with open_runtime(home) as runtime:
        options = {"name": "x", "labels": ["l"], "claims": ["read:path:a"]}
        first = await runtime.submit(repository, ["sh", "-c", "exit 3"], **options)
        second = await runtime.submit(repository, ["true"], kind="check")
        third = await runtime.submit(repository, ["sleep", "60"], after=[second.id])
        await first.wait()
        await second.wait()
        await third.cancel()
        await third.wait()
        served = [as_json(view) for view in await runtime.jobs(JobQuery())]
    assert offline.jobs(str(home), []) == served
    for view in served:
        assert offline.job(str(home), view["id"]) == view
    ids = [view["id"] for view in served]
    for filters, wanted in (
        ([("kind", "check")], [second.id]),
        ([("label", "l"), ("repo", "app")], [first.id]),
        ([("state", "failed"), ("state", "succeeded")], [second.id, first.id]),
        ([("repo", "other")], []),
        ([("active", "1")], []),
        ([("failed", 1)], [first.id]),
        ([("origin", "embedded")], ids),
        ([("limit", 1), ("before", ids[0])], ids[1:2]),
    ):
        assert [view["id"] for view in offline.jobs(str(home), filters)] == wanted
    select = offline.selector(str(home))
    assert select({"failed": True}) == [first.id]
    assert select({"repo": ["app"], "jobs": [first.id, second.id[-6:]]}) == ids[1:]
    assert offline.job(str(home), first.id[-5:])["name"] == "x"
    with pytest.raises(NotFound):
        offline.job(str(home), first.id[-3:])
    with pytest.raises(Refused):
        offline.job(str(home), first.id[:4])


def test_a_home_without_a_store_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        offline.jobs(str(tmp_path), [])
    assert not list(tmp_path.iterdir())


def test_a_newer_store_is_not_read(tmp_path: Path) -> None:
    store = apsw.Connection(str(tmp_path / STORE))
    store.execute(f"PRAGMA user_version = {offline.SCHEMA + 1}")
    store.close()
    with pytest.raises(StoreFromTheFuture):
        offline.job(str(tmp_path), "any")


def test_the_names_of_the_store_are_those_of_the_runtime() -> None:
    assert STORE == STORE_FILE
    assert max(migrations()) == offline.SCHEMA
