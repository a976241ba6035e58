"""The feed of the dashboard: it follows a service, and asks for what changed alone."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from msgspec import structs

from forge_actors.cli.dashboard import feed as feeds
from forge_actors.cli.dashboard.board import Board
from forge_actors.cli.dashboard.feed import Feed
from forge_actors.domain.errors import Refused
from forge_actors.domain.inbox import Item
from forge_actors.domain.requests import JobQuery, JobRequest
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from forge_actors.testing.control import FakeControl


class Watched:
    """A board that a feed keeps, and what was told of it."""

    def __init__(self, home: Path) -> None:
        self.board = Board()
        self.shown: list[str] = []
        self.lost: list[str | None] = []
        self._told = trio.Event()
        self.feed = Feed(
            str(home),
            self.board,
            shown=lambda: self.shown,
            changed=self._wake,
            lost=self._lose,
        )

    def _wake(self) -> None:
        self._told.set()
        self._told = trio.Event()

    def _lose(self, sentence: str | None) -> None:
        self.lost.append(sentence)
        self._wake()

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self._told.wait()


@asynccontextmanager
async def watched(home: Path) -> AsyncGenerator[Watched, None]:
    seen = Watched(home)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(seen.feed.run)
        yield seen
        nursery.cancel_scope.cancel()


async def submit(control: FakeControl, count: int = 1, **fields: Any) -> list[str]:
    request = JobRequest("app", ["make"], **fields)
    return [each.id for each in await control.submit([request] * count)]


async def test_it_loads_what_is_there_and_follows(tmp_path: Path) -> None:
    async with fake_service(tmp_path) as control:
        await control.add_repository("/app")
        [waits, runs, ended] = await submit(control, 3)
        control.begin(runs)
        control.end(ended, "failed", exit_code=2)
        async with watched(tmp_path) as seen:
            await seen.until(lambda: len(seen.board.jobs) == 3)
            await seen.until(lambda: seen.lost == [None])
            assert seen.board.status["capacity"]["workers"]["limit"] == 4
            seen.shown = [waits]
            control.begin(waits)
            control.emit("job_running", job=waits, repo="app", pid=1)
            # From the event at once, and all of it when it was asked for.
            await seen.until(lambda: seen.board.jobs[waits].started_at is not None)
            await seen.until(lambda: not seen.board.stale)
            [new] = await submit(control, name="new")
            control.emit("job_queued", job=new, repo="app", reason="accepted")
            await seen.until(lambda: new in seen.board.jobs)
            assert seen.board.jobs[new].name == "new"


async def test_what_is_not_on_the_screen_is_not_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fake_service(tmp_path) as control:
        await control.add_repository("/app")
        jobs = await submit(control, 20)
        asked: list[str] = []
        job_of = control.job

        async def job(selector: str) -> Any:
            asked.append(selector)
            return await job_of(selector)

        monkeypatch.setattr(control, "job", job)
        async with watched(tmp_path) as seen:
            await seen.until(lambda: len(seen.board.jobs) == 20)
            seen.shown = jobs[:2]
            for each in jobs:
                control.begin(each)
                control.emit("job_running", job=each, repo="app", pid=1)
            await seen.until(lambda: len(seen.board.stale) == 18)
            assert set(asked) == set(jobs[:2])
            assert all(view.state == "running" for view in seen.board.jobs.values())
            seen.shown = jobs[5:6]
            seen.feed.wake()
            await seen.until(lambda: jobs[5] not in seen.board.stale)


async def test_an_idle_service_is_asked_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fake_service(tmp_path) as control:
        calls = 0
        status_of = control.status

        async def status() -> Any:
            nonlocal calls
            calls += 1
            return await status_of()

        monkeypatch.setattr(control, "status", status)
        async with watched(tmp_path) as seen:
            await seen.until(lambda: seen.lost == [None])
            await trio.testing.wait_all_tasks_blocked(0.3)
            assert calls == 1
            control.emit("paused", scope="all", jobs=False)
            await seen.until(lambda: calls == 2)


async def test_a_service_that_is_not_ready_is_waited_for(tmp_path: Path) -> None:
    async with fake_service(tmp_path) as control:
        control.set_ready(False)
        async with watched(tmp_path) as seen:
            await seen.until(lambda: seen.lost == [None])
            assert not seen.board.status["ready"]
            control.set_ready(True)
            await seen.until(lambda: seen.board.status["ready"])


async def test_many_new_jobs_are_fetched_in_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "PAGE", 3)
    async with fake_service(tmp_path) as control:
        await control.add_repository("/app")
        old = await submit(control, 7)
        async with watched(tmp_path) as seen:
            await seen.until(lambda: len(seen.board.jobs) == 7)
            new = await submit(control, 8)
            control.emit("job_queued", job=new[-1], repo="app", reason="accepted")
            await seen.until(lambda: set(seen.board.jobs) == {*old, *new})


async def test_what_needs_a_person_is_known_however_old_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "MAX_FINISHED", 1)
    async with fake_service(tmp_path) as control:
        await control.add_repository("/app")
        old, newer = await submit(control, 2)
        for each in (old, newer):
            control.end(each, "failed", exit_code=1)
        item = Item("job:1", "job", "look", None, "app", old, evidence={}, actions=[])
        control.inbox_items = [item]
        async with watched(tmp_path) as seen:
            await seen.until(lambda: seen.lost == [None])
            assert set(seen.board.jobs) == {old, newer}
            assert seen.board.attention == {old}
            control.inbox_items = []
            control.emit("inbox_dismissed", item="job:1")
            await seen.until(lambda: seen.board.attention == set())


async def test_a_job_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    async with fake_service(tmp_path) as control:
        await control.add_repository("/app")
        [job] = await submit(control)
        async with watched(tmp_path) as seen:
            await seen.until(lambda: job in seen.board.jobs)
            seen.shown = [job]
            del control.views[job]
            control.emit("job_edited", job=job, repo="app", changed={})
            await seen.until(lambda: job not in seen.board.jobs)


async def test_it_comes_back_when_the_service_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "AGAIN_SECONDS", 0.05)
    async with watched(tmp_path) as seen:
        await seen.until(lambda: bool(seen.lost))
        assert "no service runs on" in (seen.lost[0] or "")
        async with fake_service(tmp_path) as control:
            await seen.until(lambda: seen.lost[-1] is None)
            control.request_stop()
            await seen.until(lambda: "has ended" in (seen.lost[-1] or ""))


@pytest.mark.parametrize(
    ("what", "state"),
    [
        ("cancel", "queued"),
        ("retry", "failed"),
        ("pause", "running"),
        ("resume", "running"),
    ],
)
async def test_what_the_keys_do_is_done(tmp_path: Path, what: str, state: str) -> None:
    async with fake_service(tmp_path) as control:
        await control.add_repository("/app")
        [job] = await submit(control)
        control.views[job] = structs.replace(control.views[job], state=state)
        feed = Watched(tmp_path).feed
        said = await feed.act(what, control.views[job])
        if what == "retry":
            [new, _] = await control.jobs(JobQuery())
            assert said == f"it runs again as {new.id}"
        else:
            assert said == feeds.DONE[what]
        if what == "cancel":
            assert control.views[job].state == "cancelled"
            with pytest.raises(Refused):
                await feed.act("cancel", control.views[job])


async def test_everything_is_paused_and_goes_on(tmp_path: Path) -> None:
    async with fake_service(tmp_path) as control:
        feed = Watched(tmp_path).feed
        await feed.pause_all(on=True)
        assert set(control.pauses) == {"all"}
        await feed.pause_all(on=False)
        assert control.pauses == {}


async def test_why_a_job_waits_is_told_if_somebody_knows(tmp_path: Path) -> None:
    async with fake_service(tmp_path) as control:
        await control.add_repository("/app")
        [job] = await submit(control)
        feed = Watched(tmp_path).feed
        assert await feed.why(job) == "It waits its turn."
        assert await feed.why("1m8p57vc00000000001") is None
