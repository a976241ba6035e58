"""Jobs that a running job submits: they are written down with it, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from forge_actors.domain.changes import JobDispatched
from forge_actors.domain.errors import FencingTokenStale, Refused
from forge_actors.domain.events import Event
from forge_actors.domain.requests import JobRequest, Parent
from tests.runtime.admission_kit import admission, ended

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.jobs import Job
    from tests.runtime.admission_kit import Case

pytestmark = pytest.mark.mock_clock


async def parent_of(case: Case, attempt: int = 1, fence: int = 5) -> Parent:
    """A job whose attempt runs."""
    job = await case.submit("true", kind="dispatch-task")
    await dispatch(case, job, attempt, fence)
    return Parent(job.id, attempt, fence)


async def dispatch(case: Case, job: Job, attempt: int, fence: int) -> None:
    event = Event("job_dispatched", 2.0, job.repo, job.id)
    change = JobDispatched(job.id, job.repo, attempt, fence, 2.0, event)
    await case.store.save([change]).wait()


async def test_a_job_and_that_it_was_handed_on_are_saved_together(
    tmp_path: Path,
) -> None:
    async with admission(tmp_path) as case:
        parent = await parent_of(case)
        child = await case.submit("make", parent=parent)
        await case.submit("test", parent=parent)
        assert case.store.child_of(parent.job) == child.id
        told = [e.data for e in case.store.events(0, 99) if e.kind == "job_delegated"]
        assert told[0] == {
            "attempt": 1,
            "fence": 5,
            "child": child.id,
            "children": 1,
        }
        assert len(told) == 2


async def test_a_batch_is_handed_on_as_one(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        parent = await parent_of(case)
        batch = [JobRequest("app", ["true"], parent=parent) for _ in range(3)]
        first, *_ = await case.admission.submit(batch)
        assert case.store.child_of(parent.job) == first.id
        [told] = [e.data for e in case.store.events(0, 99) if e.kind == "job_delegated"]
        assert told["children"] == 3


async def test_one_that_was_there_already_counts_as_handed_on(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        known = await case.submit("make", unique="k")
        parent = await parent_of(case)
        again = await case.submit("make", unique="k", parent=parent)
        assert again.id == known.id
        assert case.store.child_of(parent.job) == known.id


@pytest.mark.parametrize(
    ("attempt", "fence", "end"), [(0, 5, False), (1, 4, False), (1, 5, True)]
)
async def test_an_attempt_that_is_not_the_current_one_submits_nothing(
    tmp_path: Path, attempt: int, fence: int, end: bool
) -> None:
    async with admission(tmp_path) as case:
        parent = await parent_of(case)
        jobs = case.jobs()
        if end:
            over = structs.replace(ended(jobs[parent.job]), attempt=1, fence=5)
            await case.store.save([over]).wait()
        stale = Parent(parent.job, attempt, fence)
        with pytest.raises(
            FencingTokenStale, match=f"attempt {attempt} of job"
        ) as told:
            await case.submit("make", parent=stale)
        assert told.value.code == "FENCING_TOKEN_STALE"
        assert set(case.jobs()) <= set(jobs)
        assert case.store.child_of(parent.job) is None


async def test_an_unknown_parent_submits_nothing(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        with pytest.raises(FencingTokenStale):
            await case.submit("make", parent=Parent("nobody", 1, 1))
        assert case.jobs() == {}


async def test_what_could_not_be_saved_is_not_handed_on(tmp_path: Path) -> None:
    async with admission(tmp_path, limits={"queued_jobs": 1}) as case:
        parent = await parent_of(case)
        with pytest.raises(Refused, match="limit"):
            await case.submit("make", parent=parent)
        assert case.store.child_of(parent.job) is None


async def test_a_request_is_the_same_one_whoever_hands_it_on(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        parent = await parent_of(case)
        first = await case.submit("make", request_id="r")
        again = await case.submit("make", request_id="r", parent=parent)
        assert first.id == again.id
