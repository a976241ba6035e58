"""Schedules that wait for issues, in a real runtime that asks a server over HTTP."""

from __future__ import annotations

import subprocess
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio

from forge_actors.actors.issue_watches_messages import Follow, Leave
from forge_actors.actors.mailbox import open_mailbox
from forge_actors.domain.causes import parse_cause
from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.domain.schedule_views import ScheduleRequest
from forge_actors.domain.schedules import Progress, Schedule
from forge_actors.domain.triggers import On
from forge_actors.runtime import issue_watching, schedule_requests
from forge_actors.runtime.issue_watching import IssueWatching
from forge_actors.testing.clock import START
from forge_actors.testing.github import World, serving
from tests.actors.schedules_kit import made
from tests.runtime.control_kit import Case, controlled
from tests.runtime.kit import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from forge_actors.testing.github.server import GitHubServer
    from forge_actors.testing.github.world import Repository

TOKEN = "github_pat_testtesttesttesttest"
TITLE = "Fix $(touch pwned) `id` \"quoted\" 'too'"
#: Writes down what it is given, under the number of its issue.
TELLS = ["sh", "-c", 'env > "told-$FORGE_ISSUE_NUMBER"']


async def test_one_that_waits_for_something_else_now_is_watched_no_more() -> None:
    nothing: Any = None
    watching = IssueWatching(nothing, nothing)
    watching.mailbox, inbox = open_mailbox("issues")
    once = "issues:octo/demo", "branch:main"
    schedules = [
        Schedule("s", 1, made("s", On(parse_cause(on))), Progress(START)) for on in once
    ]
    for schedule in schedules:
        watching.follow(schedule)
    heard = [inbox.receive_nowait() for _ in schedules]
    assert heard == [Follow(schedules[0]), Leave("s")]


class People:
    """Who open issues of octo/demo, and where that is told."""

    def __init__(self, server: GitHubServer, demo: Repository) -> None:
        self.server, self.demo = server, demo
        #: The issues were asked for.
        self.asked = trio.Event()
        server.troubles.after("/issues$", self.asked.set)

    def open(self, number: int, **more: Any) -> None:
        self.server.world.issue(self.demo, number, **more)


@asynccontextmanager
async def people(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[People]:
    world = World()
    demo = world.repository("octo", "demo", private=True)
    world.token(TOKEN)
    # Nobody waits for half a minute here.
    monkeypatch.setattr(schedule_requests, "LEAST_PACE", 0.0)
    async with serving(world) as server:
        monkeypatch.setenv("GITHUB_API_URL", server.base)
        monkeypatch.setenv("GH_TOKEN", TOKEN)
        yield People(server, demo)


def come_from(folder: Path, url: str) -> None:
    words = ["git", "-C", str(folder), "remote", "add", "origin", url]
    subprocess.run(words, check=True, capture_output=True)


async def add(case: Case, on: str = "issues", **more: Any) -> None:
    wanted: dict[str, Any] = {"every": "1s", "job": {"argv": TELLS}, **more}
    request = ScheduleRequest(name="s", repo="app", on=on, **wanted)
    await case.control.add_schedule(request)


async def ended(case: Case, count: int) -> None:
    """Wait until so many jobs have succeeded."""
    found = 0
    async for event in case.runtime.events(after=0):
        assert event.kind != "job_failed", event.data
        found += event.kind == "job_succeeded"
        if found == count:
            return


def told(folder: Path, number: int) -> dict[str, str]:
    lines = (folder / f"told-{number}").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


async def test_each_issue_has_one_job_that_is_told_of_it_also_over_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "app"
    async with people(monkeypatch) as at:
        at.open(1, title="It was there before")
        async with controlled(tmp_path) as case:
            come_from(folder, "git@github.com:Octo/Demo.git")
            await add(case)
            await at.asked.wait()
            at.open(2, title=TITLE)
            await ended(case, 1)
            view = await case.control.schedule("s")
            assert view.trigger == "on issues:octo/demo, asked every 1s"
            assert view.definition["overlap"] == "queue"
            assert view.definition["every"] == 1.0
            assert str(view.waits_for).startswith("an open issue of octo/demo changes")
        env = told(folder, 2)
        assert env["FORGE_ISSUE_TITLE"] == TITLE
        assert env["FORGE_ISSUE_URL"] == "https://github.com/octo/demo/issues/2"
        assert TOKEN not in str(env)
        at.open(3)
        async with running(tmp_path / "home") as runtime:
            case = Case(runtime, tmp_path)
            await ended(case, 2)
            assert told(folder, 3)["FORGE_ISSUE_NUMBER"] == "3"
            assert len(await case.control.occurrences("s")) == 2
    assert sorted(each.name for each in folder.glob("told-*")) == ["told-2", "told-3"]
    assert not (folder / "pwned").exists()
    for path in (tmp_path / "home").rglob("*"):
        if path.is_file():
            assert TOKEN.encode() not in path.read_bytes(), path
    assert {each.method for each in at.server.troubles.log} == {"GET"}


async def test_what_keeps_issues_from_being_seen_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with people(monkeypatch) as at, controlled(tmp_path) as case:
        spent = {"retry-after": "1800"}
        at.server.troubles.fault("/issues$", status=429, headers=spent, times=99)
        await add(case, "issues:octo/demo,label:bug")
        await at.asked.wait()
        view = await case.control.schedule("s")
        while "not seen now" not in str(view.waits_for):
            await trio.lowlevel.checkpoint()
            view = await case.control.schedule("s")
        assert "issue of octo/demo with the label bug changes" in str(view.waits_for)
        assert "429 to GET /repos/octo/demo/issues" in str(view.waits_for)
        assert TOKEN not in str(view)


async def test_what_cannot_be_watched_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with controlled(tmp_path) as case:
        with pytest.raises(InvalidInput, match=r"name the one that is meant: issues:"):
            await add(case, every="30s")
        come_from(tmp_path / "app", "/srv/git/app.git")
        with pytest.raises(InvalidInput, match="origin of app is no repository"):
            await add(case, every="30s")
        for every in ("29s", "25h"):
            with pytest.raises(InvalidInput, match="asked for each 30s to each 24h"):
                await add(case, "issues:octo/demo", every=every)
        monkeypatch.setattr(issue_watching, "is_here", lambda: False)
        with pytest.raises(Refused, match=r"forge-actors\[epic\]"):
            await add(case, "issues:octo/demo", every="30s")
        assert await case.control.schedules() == []
