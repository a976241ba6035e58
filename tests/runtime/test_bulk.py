"""One verb for very many jobs: what it costs, and what it does if one is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.errors import Refused
from forge_actors.domain.requests import JobQuery, JobRequest
from forge_actors.runtime.job_rows import PIECE
from tests.edges.store_kit import commits
from tests.runtime.control_kit import Case, controlled

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["commits"]


async def queue(case: Case, count: int) -> list[str]:
    """Jobs that wait, as nothing starts."""
    await case.control.pause("all")
    request = JobRequest("app", ["true"])
    return [entry.id for entry in await case.control.submit([request] * count)]


async def test_a_commit_is_for_many_jobs(tmp_path: Path, commits: list[str]) -> None:
    async with controlled(tmp_path) as case:
        jobs = await queue(case, 2 * PIECE)
        commits.clear()
        held = await case.control.steer_all(jobs, "hold")
        assert [view.id for view in held] == jobs
        assert all(view.waiting and view.waiting["kind"] == "pause" for view in held)
        ended = await case.control.cancel_all(jobs)
        assert {view.state for view in ended} == {"cancelled"}
        # Of each piece its own; the start of another part may have one beside it.
        assert len(commits) <= 4 + 1


async def test_a_removed_repository_ends_many_jobs_at_once(
    tmp_path: Path, commits: list[str]
) -> None:
    async with controlled(tmp_path) as case:
        await queue(case, 2 * PIECE)
        commits.clear()
        await case.control.remove_repository("app", cancel=True)
        assert len(commits) <= 3 + 1
        assert not await case.control.jobs(JobQuery(active=True))


async def test_if_one_job_cannot_be_held_none_is(tmp_path: Path) -> None:
    async with controlled(tmp_path, limits={"workers": 1}) as case:
        runs = await case.hold()
        waits = await case.submit()
        with pytest.raises(Refused, match=f"job {runs} runs: hold is for jobs that"):
            await case.control.steer_all([waits, runs], "hold")
        assert (await case.why(waits))[1]["kind"] == "token"
        ended = await case.end(runs, waits)
        with pytest.raises(Refused, match=f"job {ended[0].id} has ended"):
            await case.control.steer_all([ended[0].id], "unhold")


async def test_jobs_that_have_ended_stay_as_they_are_when_others_are_cancelled(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        done = await case.submit()
        await case.control.wait([done])
        [waits] = await queue(case, 1)
        views = await case.control.cancel_all([done, waits])
        assert [view.state for view in views] == ["succeeded", "cancelled"]


async def test_several_jobs_are_shown_as_one_alone_is(tmp_path: Path) -> None:
    async with controlled(tmp_path, limits={"workers": 1}) as case:
        runs = await case.hold()
        waits = await case.submit()
        named = await case.control.jobs_named([waits, runs[-6:], waits])
        assert [view.id for view in named] == [waits, runs, waits]
        assert named[0].waiting is not None
        assert named[1].state == "running"
        await case.end(runs, waits)
