"""Reloading the settings of a runtime: whole, durable, live, and harmless to jobs."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import apsw
import pytest
import trio

from forge_actors.domain.errors import InvalidInput, Refused, StoreFailed
from forge_actors.domain.events import EventQuery
from forge_actors.domain.requests import JobQuery, JobRequest
from forge_actors.domain.settings import SettingChange
from forge_actors.runtime.in_force import compare
from forge_actors.runtime.runtime import open_runtime
from forge_actors.runtime.settings import Settings, settings_from
from tests.runtime.control_kit import Case, controlled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

CALM = "[pressure]\nmax_load_per_cpu = 1e6\nmin_free_memory_mb = 64\n"


class Home(Case):
    """A runtime on a settings file."""

    def write(self, text: str) -> None:
        (self.folder / "home" / "settings.toml").write_text(CALM + text)

    async def reload(self, text: str) -> dict[str, tuple[Any, Any]]:
        self.write(text)
        changes = await self.control.reload_settings()
        return {change.name: (change.old, change.new) for change in changes}

    async def values(self) -> dict[str, Any]:
        return {view.name: view.value for view in await self.control.settings()}

    async def began(self, job: str) -> None:
        async for event in self.runtime.events(after=0):
            if (event.kind, event.job) == ("job_running", job):
                return


@asynccontextmanager
async def at_home(folder: Path, text: str = "") -> AsyncGenerator[Home, None]:
    (folder / "home").mkdir(mode=0o700)
    (folder / "home" / "settings.toml").write_text(CALM + text)
    async with open_runtime(folder / "home") as runtime:
        case = Home(runtime, folder)
        await case.add("app")
        yield case


async def test_what_changed_holds_at_once_and_is_told(tmp_path: Path) -> None:
    async with at_home(tmp_path, "[limits]\nworkers = 1\n") as home:
        first = await home.hold()
        second = await home.submit("app", "sleep", "600")
        assert (await home.why(second))[1]["resource"] == "repository_workers"
        changes = await home.reload("[limits]\nworkers = 2\nqueued_jobs = 2\n")
        assert changes == {
            "limits.workers": (1, 2),
            "limits.queued_jobs": (200_000, 2),
        }
        await home.began(second)
        with pytest.raises(Refused, match="limit of 2"):
            await home.submit()
        status: Any = await home.control.status()
        assert status["capacity"]["workers"]["limit"] == 2
        assert (await home.values())["limits.workers"] == 2
        page = await home.control.events(EventQuery(limit=1000), wait=False)
        kinds = {event.kind: event for event in page.events}
        event = kinds["settings_changed"]
        assert kinds["limits"].data["repository_workers"] == 2
        assert event.data["changed"] == {
            "limits.workers": {"old": 1, "new": 2},
            "limits.queued_jobs": {"old": 200_000, "new": 2},
        }
        await home.end(first, second)


async def test_a_reload_without_a_change_says_so_and_notes_nothing(
    tmp_path: Path,
) -> None:
    async with at_home(tmp_path) as home:
        before = home.control.last_event
        assert await home.reload("[limits]\nworkers = 4\n") == {}
        assert home.control.last_event == before
        views = {view.name: view for view in await home.control.settings()}
        assert views["limits.workers"].source == "file"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[limits\n", ":4: is no valid TOML"),
        ("[limits]\nwrokers = 3\n", ":5: limits.wrokers: .*did you mean 'workers'"),
        ("[limits]\nworkers = '3'\n", ":5: limits.workers: '3' is not allowed"),
        ("[providers.codex]\nlimit = 0\n", ":5: providers.codex.limit: 0 is not"),
    ],
)
async def test_a_broken_file_changes_nothing(
    text: str, problem: str, tmp_path: Path
) -> None:
    """C-05"""
    async with at_home(tmp_path, "[limits]\nworkers = 2\n") as home:
        job = await home.hold()
        before = await home.values(), home.control.last_event
        with pytest.raises(InvalidInput, match=rf"settings\.toml{problem}"):
            await home.reload(text)
        assert (await home.values(), home.control.last_event) == before
        assert (await home.control.job(job)).state == "running"
        await home.end(job)


async def test_the_environment_is_read_again_and_beats_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_home(tmp_path) as home:
        monkeypatch.setenv("FORGE_MAX_WORKERS", "7")
        assert await home.reload("[limits]\nworkers = 9\n") == {
            "limits.workers": (4, 7)
        }
        monkeypatch.setenv("FORGE_MAX_WORKERS", "none")
        with pytest.raises(InvalidInput, match="FORGE_MAX_WORKERS: 'none' is"):
            await home.reload("")
        assert (await home.values())["limits.workers"] == 7


async def test_a_file_that_is_gone_means_the_defaults(tmp_path: Path) -> None:
    async with at_home(tmp_path, "[limits]\nworkers = 2\n") as home:
        (tmp_path / "home" / "settings.toml").unlink()
        changes = await home.control.reload_settings()
        told = {change.name: change.new for change in changes}
        assert told.pop("limits.workers") == 4
        assert all(name.startswith("pressure.") for name in told)


async def test_the_jobs_of_a_provider_that_is_gone_wait_and_say_how_to_cure_it(
    tmp_path: Path,
) -> None:
    """C-05 and Q-09."""
    local = "[providers.local]\nlimit = 1\n"
    async with at_home(tmp_path, local) as home:
        runs = await home.hold(provider="local")
        waits = await home.submit(provider="local")
        assert await home.reload("") == {"providers.local.limit": (1, None)}
        explanation, waiting = await home.why(waits)
        assert waiting["kind"] == "policy"
        assert explanation.sentence.startswith("It cannot run: the settings no longer")
        assert "[providers.local]" in explanation.sentence
        assert "settings reload" in explanation.sentence
        [listed] = [j for j in await home.control.jobs(JobQuery()) if j.id == waits]
        assert listed.waiting is not None
        assert listed.waiting["kind"] == "policy"
        with pytest.raises(InvalidInput, match="provider: 'local' is no known"):
            await home.submit(provider="local")
        status: Any = await home.control.status()
        assert status["providers"]["local"] == {
            "used": 1,
            "limit": 0,
            "jobs": [runs],
            "state": "removed",
        }
        other = await home.submit()
        [end] = await home.control.wait([other])
        assert end.state == "succeeded"
        assert (await home.control.job(runs)).state == "running"
        assert await home.reload(local) == {"providers.local.limit": (None, 1)}
        await home.end(runs)
        [end] = await home.control.wait([waits])
        assert end.state == "succeeded"


async def test_more_output_is_kept_of_new_attempts_and_old_logs_read_the_same(
    tmp_path: Path,
) -> None:
    small = "[output]\nstream_bytes = 65536\n"
    script = ("bash", "-c", "yes | head -c 200000; echo END")
    async with at_home(tmp_path, small) as home:
        first = await home.submit("app", *script)
        await home.control.wait([first])
        await home.reload("[output]\nstream_bytes = 1048576\n")
        second = await home.submit("app", *script)
        await home.control.wait([second])
        kept = [
            sum(f.stat().st_size for f in (tmp_path / "home").glob(f"logs/{job}*"))
            for job in (first, second)
        ]
        assert kept[0] < 70_000
        assert kept[1] == 200_004
        for job in (first, second):
            tail = await home.control.read_log(job, "stdout", -6, limit=100)
            assert (tail.offset, tail.data) == (199_998, b"y\nEND\n")


async def test_a_disk_that_takes_nothing_refuses_the_reload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_home(tmp_path) as home:
        store = home.control._store

        def full(*_: object) -> None:
            raise apsw.FullError("database or disk is full")

        monkeypatch.setattr(store, "_write", full)
        with pytest.raises(StoreFailed, match="disk is full"):
            await home.reload("[limits]\nworkers = 9\n")
        with pytest.raises(StoreFailed, match="disk is full"):
            await home.reload("[limits]\nworkers = 9\n")
        assert (await home.values())["limits.workers"] == 4
        monkeypatch.undo()
        store._retry()
        assert await home.reload("[limits]\nworkers = 9\n") == {
            "limits.workers": (4, 9)
        }


async def test_settings_of_a_program_have_no_file_to_read_again(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        views = await case.control.settings()
        assert {view.source for view in views} == {"program"}
        with pytest.raises(Refused, match="given by the program"):
            await case.control.reload_settings()


async def test_what_needs_a_restart_is_told_at_each_reload_and_does_not_hold(
    tmp_path: Path,
) -> None:
    async with at_home(tmp_path) as home:
        home.write("[gateway]\nheld_requests = 9\n")
        change = SettingChange("gateway.held_requests", 256, 9, needs_restart=True)
        for _ in range(2):
            assert await home.control.reload_settings() == [change]
        assert (await home.values())["gateway.held_requests"] == 256


async def test_two_reloads_at_once_are_one_after_the_other(tmp_path: Path) -> None:
    async with at_home(tmp_path) as home:
        home.write("[limits]\nworkers = 2\n")
        told: list[list[SettingChange]] = []

        async def reload() -> None:
            told.append(await home.control.reload_settings())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(reload)
            nursery.start_soon(reload)
        assert sorted(map(len, told)) == [0, 1]


def test_a_section_that_cannot_be_exchanged_live_needs_a_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    new = settings_from({"limits": {"workers": 2}, "output": {"stream_bytes": 65536}})
    monkeypatch.setattr("forge_actors.runtime.in_force.LIVE", frozenset({"limits"}))
    assert compare(Settings(), new) == [
        SettingChange("limits.workers", 4, 2),
        SettingChange("output.stream_bytes", 1 << 24, 65536, needs_restart=True),
    ]


async def test_a_secret_is_read_when_a_job_starts(tmp_path: Path) -> None:
    async with at_home(tmp_path) as home:
        secrets = home.control._admission._secrets
        secrets.write("TOKEN", b"first-value-of-it")
        gate = await home.hold(read_only=False)
        script = 'echo "<$TOKEN>"; test "$TOKEN" = second-value-of-it'
        request = JobRequest("app", ["bash", "-c", script], secrets=["TOKEN"])
        [job] = await home.control.submit([request])
        secrets.write("TOKEN", b"second-value-of-it")
        await home.end(gate)
        [end] = await home.control.wait([job.id])
        assert (end.state, end.secrets) == ("succeeded", ["TOKEN"])
        chunk = await home.control.read_log(job.id, "stdout", 0, limit=100)
        assert chunk.data == b"<[redacted]>\n"
        gate = await home.hold(read_only=False)
        lost = JobRequest("app", ["true"], secrets=["TOKEN"])
        [accepted] = await home.control.submit([lost])
        secrets.remove("TOKEN")
        await home.end(gate)
        [end] = await home.control.wait([accepted.id])
        assert end.state == "failed"
        assert end.error is not None
        assert end.error.code == "WORKER_START_FAILED"
        assert "there is no secret 'TOKEN'" in end.error.message
