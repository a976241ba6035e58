"""The dashboard without a terminal: driven by its own pilot, in front of a service."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.bench import marker
from tests.cli.board_kit import job as made_job

pytest.importorskip("textual", reason="NOT RUN: textual is not installed")

from textual.widgets import Input, Static

from forge_actors.cli.dashboard import words
from forge_actors.cli.dashboard.app import Dashboard
from forge_actors.cli.dashboard.dialogs import Confirm, Help
from forge_actors.cli.dashboard.job_list import JobList
from forge_actors.cli.dashboard.log_screen import LogScreen, LogView

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.pilot import Pilot

    from forge_actors.testing.agents import FakeAgent
    from tests.acceptance.service import LiveService

    Scene = Callable[["Seen"], Awaitable[None]]


class Seen:
    """A dashboard under a pilot."""

    def __init__(self, dashboard: Dashboard, pilot: Pilot[int]) -> None:
        self.dashboard = dashboard
        self.pilot = pilot
        self.press = pilot.press

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait for the dashboard to come so far; the test as a whole has a limit."""
        while not holds():
            await self.pilot.pause(0.02)

    def text(self, name: str) -> str:
        shown = self.dashboard.screen_stack[-1].query_one(f"#{name}", Static)
        return str(shown.content)

    @property
    def jobs(self) -> JobList:
        return self.dashboard.screen_stack[0].query_one(JobList)

    def lines(self) -> list[str]:
        height = self.jobs.size.height
        return [self.jobs.render_line(y).text.rstrip() for y in range(height)]

    async def select(self, job: str) -> None:
        """Move the cursor to a job, which may move too while we do."""
        await self.until(lambda: job in self.dashboard.board.jobs)
        await self.press("g", "j", "k")
        last = None
        while (chosen := self.jobs.selected) is None or chosen.id != job:
            at_end = chosen is not None and chosen.id == last
            last = None if chosen is None or at_end else chosen.id
            await self.press(*("g", "j", "k") if at_end else ("j",))


def play(service: LiveService, scene: Scene, size: tuple[int, int] = (80, 24)) -> None:
    async def main() -> None:
        dashboard = Dashboard(str(service.home))
        async with dashboard.run_test(size=size) as pilot:
            await scene(Seen(dashboard, pilot))

    asyncio.run(main())


def test_what_asks_is_approved_or_denied(
    claude: tuple[LiveService, FakeAgent],
) -> None:
    service, fake = claude
    fake.play("asks", text="Publish it?")
    asking = [
        service.submit("--repo", "app", "--agent", "claude", "--prompt", "Go.")
        for _ in range(2)
    ]
    for each in asking:
        service.until(each, "job_waiting_for_approval")

    async def scene(seen: Seen) -> None:
        board = seen.dashboard.board
        await seen.select(asking[0])
        assert seen.lines()[0] == "ATTENTION 2"
        await seen.until(lambda: "Publish it?" in seen.text("detail"))
        assert "inbox 2" in seen.text("head")
        await seen.press("a")
        await seen.until(lambda: board.jobs[asking[0]].state == "succeeded")
        await seen.select(asking[1])
        await seen.press("d")
        await seen.until(lambda: isinstance(seen.dashboard.screen, Confirm))
        await seen.press("y")
        await seen.until(lambda: board.jobs[asking[1]].state == "failed")
        await seen.until(lambda: not board.attention)

    play(service, scene)


def test_what_a_job_may_do_to_the_outside_is_asked_for_by_name(
    service: LiveService,
) -> None:
    service.add("app")
    options = ("--origin", "schedule:nightly", "--effects", "push")
    held = service.bash("app", "true", *options)
    service.until(held, "job_waiting_for_approval")

    async def scene(seen: Seen) -> None:
        await seen.select(held)
        assert seen.lines()[0] == "ATTENTION 1"
        await seen.press("a")
        await seen.until(lambda: isinstance(seen.dashboard.screen, Confirm))
        asked = str(seen.dashboard.screen.query_one(Static).content)
        assert "Allow this job to push? schedule:nightly began it." in asked
        await seen.press("enter")
        assert service.show(held)["state"] == "waiting_for_approval"
        await seen.press("a", "y")
        board = seen.dashboard.board
        await seen.until(lambda: board.jobs[held].state == "succeeded")

    play(service, scene)
    [approval] = service.show(held)["effects"]["approvals"]
    assert approval["how"] == "watch"


def test_what_cannot_be_done_is_said(service: LiveService) -> None:
    service.add("app")
    ended = service.submit("--repo", "app", "--", "true")
    service.end_of(ended)
    runs = service.bash("app", f"exec sleep {marker()}")

    async def scene(seen: Seen) -> None:
        await seen.select(ended)
        for key in ("c", "p", "a", "d"):
            await seen.press(key)
            assert seen.text("keys") == "this job has ended; r runs it again"
        await seen.press("k")
        assert seen.text("keys").startswith("?:help")
        await seen.select(runs)
        await seen.press("r")
        assert "has ended can run again" in seen.text("keys")
        await seen.press("a")
        assert seen.text("keys") == "this job asks nothing"
        # What the service refuses is told in its words.
        service.cli("stop", "--jobs", status=0)
        await seen.press("p")
        await seen.until(lambda: str(service.home) in seen.text("keys"))

    play(service, scene)


def test_the_cursor_stays_on_its_job(service: LiveService) -> None:
    service.add("app")
    old = service.bash("app", f"exec sleep {marker()}", "--read-only")
    chosen = service.bash("app", f"exec sleep {marker()}", "--read-only")
    for each in (old, chosen):
        service.until(each, "job_running")

    async def scene(seen: Seen) -> None:
        await seen.select(chosen)
        await seen.until(lambda: "It runs as process" in seen.text("detail"))
        service.cli("cancel", old, status=0)
        await seen.until(lambda: "FINISHED 1" in seen.lines())
        assert seen.jobs.selected is not None
        assert seen.jobs.selected.id == chosen
        service.cli("cancel", chosen, status=0)
        await seen.until(lambda: "FINISHED 2" in seen.lines())
        assert seen.jobs.selected.id == chosen
        assert chosen in seen.text("detail")

    play(service, scene)


def test_until_somebody_moves_the_first_job_is_looked_at(
    service: LiveService,
) -> None:
    service.add("app")
    jobs = [
        service.bash("app", f"exec sleep {marker()}", "--read-only") for _ in range(3)
    ]
    for each in jobs:
        service.until(each, "job_running")

    async def scene(seen: Seen) -> None:
        await seen.until(lambda: len(seen.dashboard.board.jobs) == 3)

        def chosen() -> str | None:
            return None if seen.jobs.selected is None else seen.jobs.selected.id

        await seen.until(lambda: chosen() == jobs[0])
        service.cli("cancel", jobs[0], status=0)
        await seen.until(lambda: chosen() == jobs[1])
        await seen.press("tab")
        assert chosen() == jobs[0]
        service.cli("cancel", jobs[1], status=0)
        await seen.until(lambda: "FINISHED 2" in seen.lines())
        assert chosen() == jobs[0]
        await seen.press("g")
        assert chosen() == jobs[2]

    play(service, scene)


def test_help_and_the_filter_open_and_close(service: LiveService) -> None:
    service.add("app")
    for name in ("lint", "build"):
        service.end_of(service.submit("--repo", "app", "--name", name, "--", "true"))

    async def scene(seen: Seen) -> None:
        await seen.until(lambda: len(seen.dashboard.board.jobs) == 2)
        await seen.press("question_mark")
        assert isinstance(seen.dashboard.screen, Help)
        await seen.press("q")
        assert not isinstance(seen.dashboard.screen, Help)
        await seen.press("slash", *"LINT")
        field = seen.dashboard.query_one("#filter", Input)
        assert (field.display, field.value) == (True, "LINT")
        assert len(seen.jobs.on_screen()) == 1
        await seen.press("enter")
        assert seen.text("keys").startswith("filter: LINT, escape shows all")
        await seen.press("escape")
        assert len(seen.jobs.on_screen()) == 2
        await seen.press("slash", *"nowhere", "enter")
        assert seen.jobs.on_screen() == []
        for key in ("j", "enter", "c", "r", "tab", "G"):
            await seen.press(key)
        assert seen.text("detail") == ""

    play(service, scene)


def test_a_log_is_followed_and_searched(service: LiveService) -> None:
    place = service.add("app")
    gate = place / "gate"
    script = (
        "seq -f 'line %g' 500; while [ ! -e gate ]; do sleep 0.05; done;"
        " echo needle; echo err >&2; sleep 0.1"
    )
    job = service.bash("app", script)
    service.until(job, "job_running")

    async def scene(seen: Seen) -> None:
        await seen.select(job)
        await seen.press("enter")
        await seen.until(lambda: isinstance(seen.dashboard.screen, LogScreen))
        view = seen.dashboard.screen.query_one(LogView)
        lines = view.log_lines.lines

        def shown() -> list[str]:
            return [view.render_line(y).text.rstrip() for y in range(view.size.height)]

        await seen.until(lambda: "line 500" in shown())
        assert "500 lines, following" in seen.text("log-keys")
        await seen.press("g")
        assert shown()[0] == "line 1"
        await seen.until(lambda: "stopped; f follows" in seen.text("log-keys"))
        await seen.press("slash", *"LINE 40", "enter")
        assert shown()[0] == "line 40"
        await seen.press("n")
        assert shown()[0] == "line 400"
        await seen.press("N")
        assert shown()[0] == "line 40"
        gate.touch()
        await seen.until(lambda: "needle" in lines and "err" in lines)
        assert shown()[0] == "line 40", "it does not run away under who reads"
        await seen.press("f")
        assert {"needle", "err"} <= set(shown())
        await seen.until(lambda: "ended" in seen.text("log-keys"))
        await seen.press("escape")
        assert not isinstance(seen.dashboard.screen, LogScreen)

    play(service, scene)


def test_of_many_jobs_those_on_the_screen_are_drawn(
    service: LiveService, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = 0
    line_of = words.line

    def line(*arguments: object) -> words.Line:
        nonlocal drawn
        drawn += 1
        return line_of(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(words, "line", line)

    async def scene(seen: Seen) -> None:
        await seen.until(lambda: seen.text("head").startswith("forge-actors  ready"))
        board, before = seen.dashboard.board, drawn
        board.begin(made_job(n, name=f"job {n}") for n in range(5000))
        seen.dashboard._changed()
        await seen.pilot.pause()
        await seen.press("G")
        assert seen.lines()[-1].rstrip().endswith("s") or seen.lines()[-1]
        assert seen.jobs.selected is not None
        assert seen.jobs.selected.name == "job 4999"
        for _ in range(30):
            await seen.press("pageup")
        await seen.press("slash", *"job 4321", "enter")
        assert len(seen.jobs.on_screen()) == 1
        assert drawn - before < 60 * 3 * seen.jobs.size.height

    play(service, scene)


@pytest.mark.parametrize("size", [(80, 24), (40, 10), (20, 5), (200, 60), (1, 1)])
def test_it_draws_at_any_size(service: LiveService, size: tuple[int, int]) -> None:
    service.add("app")
    service.end_of(service.submit("--repo", "app", "--", "true"))

    async def scene(seen: Seen) -> None:
        await seen.until(lambda: len(seen.dashboard.board.jobs) == 1)
        await seen.press("question_mark", "x", "j", "enter")
        await seen.until(lambda: isinstance(seen.dashboard.screen, LogScreen))
        await seen.press("q", "c", "P", "n", "slash", "x", "escape")

    play(service, scene, size)
