"""A timeline of a runtime, and of the home that it leaves."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from msgspec import convert, to_builtins

from forge_actors.client import offline_timeline
from forge_actors.domain.errors import InvalidInput, NotFound
from forge_actors.domain.timeline import DEFAULT_SPANS, Timeline, TimelineQuery
from forge_actors.runtime import control_timeline, event_log
from tests.runtime.control_kit import Case, controlled

if TYPE_CHECKING:
    from pathlib import Path


async def finished(case: Case, repo: str = "app", *argv: str, **options: object) -> str:
    job = await case.submit(repo, *argv, **options)
    await case.control.wait([job])
    return job


def kept(case: Case, shown: Timeline, repos: tuple[str, ...] = ()) -> Timeline:
    """The same window, read from the store of the home."""
    until = shown.epoch + shown.seconds
    home = str(case.folder / "home")
    told = offline_timeline.told(
        home, shown.epoch, until, repos, DEFAULT_SPANS, live=shown.live
    )
    return convert(told, Timeline)


async def test_it_tells_what_ran_when_on_which_tokens(tmp_path: Path) -> None:
    before = time.time()
    async with controlled(tmp_path) as case:
        good = await finished(case, kind="check", name="lint")
        bad = await finished(case, "app", "sh", "-c", "exit 7")
        writer = await case.hold(claims=["write:repo-content:*"], read_only=False)
        waits = await case.submit(claims=["write:repo-content:*"])
        shown = await case.control.timeline(TimelineQuery())
        runs = {run.job: run for run in shown.runs}
        assert set(runs) == {good, bad, writer}
        assert (runs[good].outcome, runs[good].exit_code) == ("succeeded", 0)
        assert (runs[good].name, runs[good].kind) == ("lint", "check")
        assert runs[good].tokens == ("workers", "heavy_checks")
        assert set(runs[good].slots) == {"workers", "heavy_checks"}
        assert (runs[bad].outcome, runs[bad].error) == ("failed", "EXIT_NONZERO")
        assert runs[bad].exit_code == 7
        assert (runs[writer].ended, runs[writer].outcome) == (None, None)
        assert [wait.job for wait in shown.waits if wait.ended is None] == [waits]
        view = await case.control.job(good)
        assert runs[good].ended is not None
        assert view.duration == pytest.approx(
            runs[good].ended - (runs[good].started or 0), abs=0.002
        )
        assert shown.epoch + (runs[good].began or 0) >= before
        assert shown.limits["workers"] > 0
        assert shown.live
        assert shown.complete_from == 0
        await case.end(writer, waits)


async def test_it_reads_the_same_where_nothing_serves_the_home(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await case.add("other")
        for repo in ("app", "other", "app"):
            await finished(case, repo)
        job = await case.hold()
        await case.control.pause_job(job)
        # One that waits for as long as somebody looks.
        await case.submit("other", claims=["exclusive:repo-content:*"], after=[job])
        for query in (
            TimelineQuery(),
            TimelineQuery(repo=("other",)),
            TimelineQuery(since="2d", until="2000-01-01"),
        ):
            if query.until is not None:
                with pytest.raises(InvalidInput, match="before"):
                    await case.control.timeline(query)
                continue
            served = await case.control.timeline(query)
            assert served.runs
            assert to_builtins(kept(case, served, query.repo)) == to_builtins(served)
        with pytest.raises(NotFound, match="nowhere"):
            kept(case, served, ("nowhere",))
        with pytest.raises(NotFound, match="nowhere"):
            await case.control.timeline(TimelineQuery(repo=("nowhere",)))


async def test_what_has_run_for_long_is_told_from_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with controlled(tmp_path) as case:
        job = await case.hold(name="old")
        waits = await case.submit(claims=["write:repo-content:*"], after=[job])
        for _ in range(3):
            await finished(case)
        whole = await case.control.timeline(TimelineQuery())
        assert next(run for run in whole.runs if run.job == job).started

        def nothing(begins: int, ends: int, last: int) -> tuple[int, int]:
            return last, last

        monkeypatch.setattr(control_timeline, "events_to_read", nothing)
        monkeypatch.setattr(control_timeline, "LOOKED_AT_ONCE", 1)
        shown = await case.control.timeline(TimelineQuery())
        [run] = shown.runs
        assert (run.job, run.name, run.tokens) == (job, "old", ("workers",))
        assert run.ended is None
        assert [wait.job for wait in shown.waits] == [waits]
        assert shown.limits["workers"] > 0
        await case.end(waits, job)


async def test_a_long_log_is_read_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with controlled(tmp_path) as case:
        jobs = [await finished(case) for _ in range(4)]
        left = [await case.submit(after=[await case.hold()]) for _ in range(3)]
        whole = await case.control.timeline(TimelineQuery(until=None))
        monkeypatch.setattr(control_timeline, "LOOKED_AT_ONCE", 2)
        monkeypatch.setattr(event_log, "LOOKED_AT_ONCE", 2)
        shown = await case.control.timeline(TimelineQuery())
        assert [run.job for run in shown.runs] == [run.job for run in whole.runs]
        assert {run.job for run in shown.runs} > set(jobs)
        assert {wait.job for wait in shown.waits if wait.ended is None} == set(left)
        assert len(shown.waits) == len(whole.waits)
        assert shown.complete_from == 0


async def test_what_is_too_long_ago_is_said_to_be_not_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with controlled(tmp_path) as case:
        for _ in range(3):
            await finished(case)
        whole = await case.control.timeline(TimelineQuery())
        last = whole.runs[-1]

        def only_the_last(begins: int, ends: int, last: int) -> tuple[int, int]:
            return last - 3, last

        for module in (control_timeline, offline_timeline):
            monkeypatch.setattr(module, "events_to_read", only_the_last)
        shown = await case.control.timeline(TimelineQuery())
        assert [run.job for run in shown.runs] == [last.job]
        assert whole.runs[-2].ended is not None
        assert last.ended is not None
        moved = whole.epoch - shown.epoch
        assert whole.runs[-2].ended <= shown.complete_from - moved <= last.ended
        assert kept(case, shown) == shown
