"""Work: which workflow instance or EPIC run a job is of, and who says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors.client import offline
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import JobQuery, JobRequest, Parent
from forge_actors.domain.selection import Selection
from forge_actors.edges.sqlite.retelling import retell
from forge_actors.runtime.job_rows import list_rows, select_ids
from forge_actors.runtime.views import view
from tests.runtime.admission_kit import admission, ended
from tests.runtime.control_kit import controlled
from tests.runtime.test_delegation import dispatch

if TYPE_CHECKING:
    from pathlib import Path

WORK = "wf-1"


async def test_it_is_kept_shown_and_found(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        of_it = await case.submit("make", work=WORK)
        other = await case.submit("make", work="wf-2")
        plain = await case.submit("make")
        # As a ledger has them after a restart.
        assert [job.work for job in (of_it, other, plain)] == [WORK, "wf-2", None]
        rows = await list_rows(case.store, JobQuery(work=[WORK, "wf-2"]), [])
        assert [view(row).work for row in rows] == ["wf-2", WORK]
        selection = Selection(work=[WORK])
        assert await select_ids(case.store, selection, [], []) == [of_it.id]
        told = [event.data for event in case.store.events(0, 99)]
        assert [one.get("work") for one in told if "kind" in one] == [
            *(WORK, "wf-2", None)
        ]
        none = Selection(work=["x"], kind=[])
        assert await select_ids(case.store, none, [], []) == []
    kept = offline.jobs(str(tmp_path), [("work", WORK)])
    assert [(one["id"], one["work"]) for one in kept] == [(of_it.id, WORK)]


async def test_what_a_job_submits_is_of_its_work(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        job = await case.submit("make", work=WORK)
        await dispatch(case, job, 1, 5)
        child = await case.submit("a", parent=Parent(job.id, 1, 5))
        named = await case.submit("b", origin=f"job:{child.id}")
        assert (child.work, named.work) == (WORK, WORK)
        plain = await case.submit("c", origin="job:0000000000000000000")
        assert plain.work is None


async def test_a_retry_is_of_the_same_work(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        job = await case.submit("make", work=WORK)
        await case.store.save([ended(job)]).wait()
        [made] = await case.admission.again.retry([job.id], "cli")
        assert case.jobs()[made.id].work == WORK
        rows = await list_rows(case.store, JobQuery(work=[WORK]), [])
        assert [view(row).id for row in rows] == [made.id, job.id]


async def test_a_request_is_the_same_one_whatever_work_it_is_of(
    tmp_path: Path,
) -> None:
    async with admission(tmp_path) as case:
        first = await case.submit("make", request_id="r", work=WORK)
        assert (await case.submit("make", request_id="r")).id == first.id


async def test_a_restored_history_tells_it_again(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        job = await case.submit("make", work=WORK)
        last = case.store.events(0, 99)[-1].seq
        retell(case.store._db, 9.0, {})
        [told] = [e for e in case.store.events(last, 99) if e.job == job.id]
        assert told.data["work"] == WORK


async def test_nobody_outside_says_it(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        with pytest.raises(InvalidInput, match="workflows and EPIC runs") as told:
            await case.submit(work=WORK)
        assert told.value.field == "work"
        batch = [JobRequest("app", ["true"]), JobRequest("app", ["true"], work=WORK)]
        with pytest.raises(InvalidInput) as told:
            await case.control.submit(batch)
        assert told.value.field == "jobs[1].work"
        assert await case.control.jobs(JobQuery()) == []
