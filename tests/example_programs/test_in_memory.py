"""Examples that embed a runtime, with the fixtures that any program's tests have."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest
import trio

from forge_actors.client.schedule_files import read_schedules
from forge_actors.domain.requests import convert
from forge_actors.domain.schedule_views import ScheduleRequest
from tests.example_programs.loading import EXAMPLES, program

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from forge_actors import WorkflowView
    from forge_actors.testing import ScriptedJob

Fixture = Any


def test_it_embeds_a_runtime_in_under_forty_lines(
    forge_run: Fixture,
    forge_runtime: Fixture,
    forge_repository: Callable[[str], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert len(EXAMPLES.joinpath("embed.py").read_text().splitlines()) < 40
    embed = program("embed.py")

    async def script(job: ScriptedJob) -> int:
        if job.cwd.endswith("lib"):
            job.print("it is broken", "stderr")
            return 2
        await trio.sleep(600)
        return 0

    async def main(*names: str) -> bool:
        async with forge_runtime(script) as runtime:
            repos = [forge_repository(name) for name in names]
            good: bool = await embed.run_everywhere(runtime, ["make"], repos)
            return good

    assert forge_run(main, "app", "web") is True
    assert forge_run(main, "app", "lib") is False
    assert "lib: failed it is broken" in capsys.readouterr().out


def test_the_actor_counts_what_failed_also_after_it_did(
    forge_run: Fixture, forge_in_memory: Fixture, forge_repository: Fixture
) -> None:
    actor = program("actor.py")

    async def script(job: ScriptedJob) -> int:
        return 1 if job.argv[1] == "no-such-verb" else 0

    memory = forge_in_memory(script)

    async def main() -> dict[str, int]:
        app = forge_repository("app")
        async with memory.open() as runtime:
            file = runtime.home / "counts.json"
            first: dict[str, int] = await actor.run(runtime, file, app)
            assert first == {"app": 1}
            # Another one counts on, and nothing counts again that it was told before.
            second: dict[str, int] = await actor.run(runtime, file, app)
            return second

    assert forge_run(main) == {"app": 2}


def test_a_campaign_stops_at_its_canary(
    forge_run: Fixture, forge_runtime: Fixture, forge_repository: Fixture
) -> None:
    campaign = program("campaign.py")
    bad: set[str] = set()
    began: list[str] = []

    async def script(job: ScriptedJob) -> int:
        began.append(job.cwd.rpartition("/")[2])
        return int(began[-1] in bad)

    async def main() -> WorkflowView:
        async with forge_runtime(script) as runtime:
            repos = [forge_repository(name) for name in ("one", "two", "three")]
            view: WorkflowView = await campaign.campaign(runtime, ["make"], repos)
            return view

    assert forge_run(main).state == "succeeded"
    assert (began[0], sorted(began)) == ("one", ["one", "three", "two"])
    began.clear()
    bad.add("one")
    assert forge_run(main).state == "failed"
    assert began == ["one"]


def test_the_nightly_schedules_come_when_they_say(
    forge_run: Fixture, forge_in_memory: Fixture, forge_repository: Fixture
) -> None:
    file = EXAMPLES / "nightly.toml"
    began: list[tuple[str, ...]] = []

    async def script(job: ScriptedJob) -> None:
        began.append(job.argv)

    async def main() -> None:
        memory = forge_in_memory(script)
        memory.clock.shift(22 * 3600)  # it is late in the evening
        async with memory.open() as runtime:
            await runtime.add_repository(forge_repository("app"))
            tables = [{**table, "repo": "app"} for table in read_schedules(str(file))]
            requests = [convert(table, ScheduleRequest) for table in tables]
            # What `schedule check`, `apply` and `next` ask.
            checked = await runtime.control.apply_schedules(
                requests, str(file), dry_run=True
            )
            assert checked.added == ["nightly", "noon"]
            assert await runtime.schedules() == []
            await runtime.control.apply_schedules(requests, str(file))
            nightly = await runtime.schedule("nightly")
            [first] = await nightly.next_times(1)
            assert first.at == "2026-01-03T02:30:00+01:00"
            await trio.sleep(3600)

    forge_run(main)
    assert began == [("git", "fsck", "--full")]
    assert tomllib.loads(file.read_text())["schedule"][1]["when_clean"] is True
