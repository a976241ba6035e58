"""The policy of a restored home, and the works of its jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from forge_actors.domain.history import History
from forge_actors.domain.policies import Policy
from forge_actors.domain.policy_changes import policy_set
from forge_actors.edges.sqlite.statements import migrations
from forge_actors.testing.store_contract import job, repository
from tests.runtime.test_restore import backup, opened, put_back, saved

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.changes import Change

EXCLUSIVE = Policy("exclusive", "wf-1", "release", 9.0, 99.5, 1)
NORMAL = Policy("normal", since=20.0, revision=2)
MAINTENANCE = Policy("maintenance", since=30.0, revision=3)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "logs").mkdir(parents=True)
    (tmp_path / "home" / "receipts").mkdir()
    return tmp_path / "home"


def becomes(*policies: Policy) -> list[Change]:
    pairs = zip((Policy(), *policies), policies, strict=False)
    return [policy_set(now, before, now.since, "") for before, now in pairs]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ((EXCLUSIVE,), (NORMAL,)),
        ((), (EXCLUSIVE, NORMAL, MAINTENANCE)),
        ((EXCLUSIVE,), ()),
    ],
)
async def test_the_one_that_was_set_last_holds(
    home: Path, earlier: tuple[Policy, ...], later: tuple[Policy, ...]
) -> None:
    await saved(home, repository(), *becomes(*earlier))
    file = backup(home)
    if later:
        await saved(home, *becomes(*later))
    put_back(home, file)
    last = (*earlier, *later)[-1]
    async with opened(home) as store:
        assert store.read_policy() == last
        history, events = History(), store.events(0, 10_000)
        [anew] = [e.seq for e in events if e.kind == "store_restored"]
        for event in events:
            if event.seq >= anew:
                history.apply(event)
    assert history.policy == last.mode


async def test_jobs_of_works_are_found_whichever_release_saved_them(
    home: Path,
) -> None:
    added = job("of-it")
    of_it = structs.replace(
        added,
        job=structs.replace(added.job, work="wf-1"),
        spec=structs.replace(added.spec, work="wf-1"),
    )
    await saved(home, repository(), of_it, job("other"))
    put_back(home, backup(home))
    [number] = [n for n, text in migrations().items() if "job_work" in text]
    [fill] = [s for s in migrations()[number].split(";") if "UPDATE job" in s]
    async with opened(home) as store:
        assert store.read("job_of_work", "wf-1") == [("of-it",)]
        # As it was before there was a column for it.
        store._db.execute("UPDATE job SET work = NULL")
        store._db.execute(fill)
        assert store.read("job_of_work", "wf-1") == [("of-it",)]
        assert store.read("works_of", '["of-it", "other"]') == [("of-it", "wf-1")]
