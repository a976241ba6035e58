"""Selecting jobs of a runtime, by ids and by what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.requests import JobQuery
from forge_actors.domain.selection import Selection
from forge_actors.runtime import job_rows
from tests.runtime.control_kit import controlled

if TYPE_CHECKING:
    from pathlib import Path


async def test_jobs_are_selected_by_what_they_are(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await case.add("lib")
        held = await case.hold(labels=["a"], origin="job:x")
        failed = await case.submit("app", "false", labels=["a", "b"])
        [end] = await case.control.wait([failed])
        assert end.state == "failed"
        blocked = await case.submit("app", after=[failed])
        gone = await case.submit("lib", "sleep", "600", kind="check")
        await case.end(gone)
        after_gone = await case.submit("lib", after=[gone])
        await case.control.wait([blocked, after_gone])

        async def ids(**wanted: Any) -> list[str]:
            found = await case.control.select(Selection(**wanted))
            # A list of jobs means the same by the same words.
            if "jobs" not in wanted and "unretried" not in wanted:
                listed = await case.control.jobs(JobQuery(**wanted))
                assert [view.id for view in listed] == found
            return found

        assert await ids(repo=["app"]) == [blocked, failed, held]
        place = str(tmp_path / "app")
        assert await ids(repo=[place], label=["a"]) == [failed, held]
        assert await ids(label=["a", "b"]) == [failed]
        assert await ids(state=["running", "cancelled"]) == [gone, held]
        assert await ids(kind=["check"]) == [gone]
        assert await ids(origin=["job:x"]) == [held]
        assert await ids(failed=True) == [after_gone, blocked, failed]
        assert await ids(failed=True, repo=["app"], label=["b"]) == [failed]
        assert await ids(label=["a"], active=True) == [held]
        assert await ids(jobs=[failed[-6:], gone, failed]) == [gone, failed]
        assert await ids(jobs=[failed, gone], repo=["lib"]) == [gone]
        assert await ids(failed=True, unretried=True) == [after_gone, blocked, failed]
        assert await ids(kind=["agent-run"]) == []
        await case.end(held)


@pytest.mark.parametrize("wanted", [{}, {"active": True}, {"unretried": True}])
async def test_every_job_of_a_home_is_no_selection(
    tmp_path: Path, wanted: dict[str, Any]
) -> None:
    async with controlled(tmp_path) as case:
        with pytest.raises(InvalidInput, match="selection: selects nothing"):
            await case.control.select(Selection(**wanted))


async def test_a_selection_of_what_is_nowhere_is_refused(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        with pytest.raises(NotFound, match="no repository is called"):
            await case.control.select(Selection(repo=["nowhere"]))
        with pytest.raises(NotFound, match="no job"):
            await case.control.select(Selection(jobs=["nowhere"]))


async def test_a_selection_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_rows, "MAX_SELECTED", 2)
    async with controlled(tmp_path) as case:
        jobs = [await case.submit() for _ in range(3)]
        await case.control.wait(jobs)
        with pytest.raises(Refused, match="more than 2 jobs are selected"):
            await case.control.select(Selection(repo=["app"]))
        found = await case.control.select(Selection(repo=["app"], jobs=jobs[:2]))
        assert found == jobs[1::-1]
