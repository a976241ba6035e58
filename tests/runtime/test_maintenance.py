"""The clean-up of a runtime: what it leaves to see, and that nothing is left of it."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
import trio

from forge_actors.cli.clean_text import clean_up_lines
from forge_actors.client import offline_home
from forge_actors.domain.changes import JobsForgotten
from forge_actors.domain.cleaning import CLASSES, CleanRequest
from forge_actors.domain.errors import ActorStopped, InvalidInput, NotFound, Refused
from forge_actors.domain.maintenance import CleanResult, Policy
from forge_actors.domain.requests import JobRequest
from forge_actors.edges.cleanup import process
from forge_actors.runtime import admission
from forge_actors.runtime.cleaning import clean_home
from forge_actors.runtime.settings import Settings
from tests.edges.test_clean_up import MARK, left_behind
from tests.runtime.control_kit import Case, controlled
from tests.runtime.kit import running

if TYPE_CHECKING:
    from pathlib import Path

ALL = CleanRequest("", 0.0)


async def forget(case: Case, *jobs: str) -> list[str]:
    """Remove jobs as a clean-up does."""
    store = case.control._store
    async with store.forgetting():
        found = store.forgettable(jobs, case.control._clock.wall() + 1)
        await store.save([JobsForgotten(found, case.control._clock.wall())]).wait()
    return [each.job for each in found]


async def test_a_run_that_somebody_asks_for_is_shown(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await case.control.wait([await case.submit()])
        result = await case.control.clean(ALL)
        assert result.error is None
        assert [each.clean_class for each in result.reports] == list(CLASSES)
        status = await case.control.status()
        shown = cast("dict[str, Any]", status["maintenance"])
        assert (shown["runs"], shown["failures_in_a_row"]) == (1, 0)
        assert shown["last"]["error"] is None
        assert set(shown["classes"]) == set(CLASSES)


async def test_a_job_that_was_removed_is_known_to_have_been_there(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        job = await case.submit(request_id="once")
        await case.control.wait([job])
        assert await forget(case, job) == [job]
        for selector in (job, job[:12]):
            with pytest.raises(NotFound, match="removed by retention"):
                await case.control.job(selector)
        with pytest.raises(NotFound, match="removed by retention"):
            await case.control.why(job)
        assert (await case.control.status())["counts"] == {}
        again = JobRequest("app", ["true"], read_only=True, request_id="once")
        with pytest.raises(Refused, match=f"belongs to job {job}"):
            await case.control.submit([again])
    async with running(case.runtime.home) as runtime:
        with pytest.raises(NotFound, match="removed by retention"):
            await runtime.control.job(job)
        assert (await runtime.control.status())["counts"] == {}


async def test_a_job_that_just_goes_is_nothing_to_run_after(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        job = await case.submit()
        await case.control.wait([job])
        store = case.control._store
        async with store.forgetting():
            found = store.forgettable([job], case.control._clock.wall() + 1)
            gone = store.save([JobsForgotten(found, 1.0)])  # not durable yet
            with pytest.raises(InvalidInput, match="removed by retention just now"):
                await case.submit(after=[job])
            await gone.wait()


async def test_a_job_that_goes_while_a_batch_is_checked_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with controlled(tmp_path) as case:
        job = await case.submit()
        await case.control.wait([job])
        pauses = []

        async def pause() -> None:
            pauses.append("pause")
            if len(pauses) == 2:  # the first job of the batch was checked
                assert await forget(case, job) == [job]

        monkeypatch.setattr(admission, "BUILT_AT_ONCE", 1)
        patched = SimpleNamespace(lowlevel=SimpleNamespace(checkpoint=pause))
        monkeypatch.setattr(admission, "trio", patched)
        first = JobRequest("app", ["true"], read_only=True, after=[job])
        second = JobRequest("app", ["true"], read_only=True)
        with pytest.raises(InvalidInput, match="removed by retention just now"):
            await case.control.submit([first, second])
        assert len(pauses) == 2


async def test_a_job_that_another_one_runs_after_stays(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        job = await case.submit()
        await case.control.wait([job])
        holds = await case.submit("app", "sleep", "600", after=[job])
        assert await forget(case, job) == []
        await case.end(holds)
        assert await forget(case, job, holds) == [job, holds]


async def test_nothing_of_it_is_left_when_the_runtime_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(*MARK.split("="))
    monkeypatch.setattr(process, "PROGRAM", "tests.edges.behaving_program")
    pids = tmp_path / "pids"
    os.mkfifo(pids)
    rules = {"behave": {"jobs": f"children:{pids}"}}
    policy = Policy(rules=rules)
    monkeypatch.setattr(Settings, "cleaning", property(lambda _: policy))
    failures: list[ActorStopped | CleanResult] = []

    async def ask(case: Case) -> None:
        try:
            failures.append(await case.control.clean(ALL))
        except ActorStopped as error:
            failures.append(error)

    async with trio.open_nursery() as nursery, controlled(tmp_path) as case:
        nursery.start_soon(ask, case)
        with trio.fail_after(30):
            told = await trio.to_thread.run_sync(pids.read_text)
        assert told.split()
        assert left_behind()
    assert left_behind() == []
    assert len(failures) == 1


async def test_a_home_without_a_service_is_cleaned_directly(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await case.control.wait([await case.submit()])
        home = case.runtime.home
        with pytest.raises(Refused, match="another service"):
            await trio.to_thread.run_sync(clean_home, home, ALL)
    result = await trio.to_thread.run_sync(clean_home, home, ALL)
    assert result.error is None
    assert len(result.reports) == len(CLASSES)


async def test_a_dry_run_of_such_a_home_touches_nothing(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await case.control.wait([await case.submit()])
        home = case.runtime.home

    def contents() -> dict[str, tuple[bytes, int]]:
        return {
            str(path): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in sorted(home.rglob("*"))
            if path.is_file()
        }

    before = contents()
    request = CleanRequest("", 0.0, dry_run=True)
    result = await trio.to_thread.run_sync(clean_home, home, request)
    assert result.error is None
    assert contents() == before


def test_a_folder_that_is_no_home_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no home of a service"):
        clean_home(tmp_path, ALL)


async def test_what_it_came_to_is_shown_without_a_service_too(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await case.control.clean(ALL)
        home = str(case.runtime.home)
        told = cast("dict[str, Any]", (await case.control.status())["maintenance"])
    kept = offline_home.status(home)["maintenance"]
    assert kept == {**told, "enabled": None, "period": None}
    assert "clean-up" in clean_up_lines(kept)
