"""The in-memory runtime: the real one, with jobs that a test plays and time it owns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.adapters import Final, SessionKnown, Usage, UsageAdded, register
from forge_actors.edges.agents import finding
from forge_actors.testing import (
    InMemory,
    Outcome,
    ScriptedAgent,
    ScriptedJob,
    assert_no_leaks,
    make_repository,
    open_memory_runtime,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.mock_clock

HOUR = 3600.0
BUDGETS = {"timeout": "EXECUTION_TIMEOUT", "idle_timeout": "IDLE_TIMEOUT"}


async def script(job: ScriptedJob) -> int | Outcome | None:
    match job.argv[0]:
        case "sleep":
            await trio.sleep(float(job.argv[1]))
        case "fail":
            job.print("so it goes", "stderr")
            return 3
        case "die":
            return Outcome(exit_code=None, signal="SIGSEGV")
        case "greet":
            job.print(f"hello {job.env['WHO']} from {job.cwd}")
    return None


async def test_jobs_end_as_their_script_says(tmp_path: Path) -> None:
    app = make_repository(tmp_path / "app")
    async with assert_no_leaks(), open_memory_runtime(script) as runtime:
        greet = await runtime.submit(app, ["greet"], env={"WHO": "you"})
        assert (await greet.wait()).state == "succeeded"
        assert await greet.read() == f"hello you from {app}\n".encode()
        failed = await (await runtime.submit(app, ["fail"])).wait()
        assert (failed.state, failed.exit_code) == ("failed", 3)
        died = await (await runtime.submit(app, ["die"])).wait()
        assert (died.state, died.signal) == ("human_attention_required", "SIGSEGV")


async def test_hours_take_no_time_and_budgets_are_kept(tmp_path: Path) -> None:
    app = make_repository(tmp_path / "app")
    async with open_memory_runtime(script) as runtime:
        before = trio.current_time()
        long = await runtime.submit(app, ["sleep", "7200"])
        assert (await long.wait()).state == "succeeded"
        assert trio.current_time() - before >= 2 * HOUR
        for budget, code in BUDGETS.items():
            late = await runtime.submit(app, ["sleep", "86400"], **{budget: "10m"})
            view = await late.wait()
            assert (view.state, view.error and view.error.code) == ("timed_out", code)


async def test_a_stop_ends_a_script_where_it_is(tmp_path: Path) -> None:
    memory = InMemory(tmp_path / "home", script)
    app = make_repository(tmp_path / "app")
    async with memory.open({"limits": {"workers": 1}}) as runtime:
        async with assert_no_leaks(runtime):
            job = await runtime.submit(app, ["sleep", "86400"])
            next_one = await runtime.submit(app, ["sleep", "1"])
            async for event in job.events():
                if event.kind == "job_running":
                    break
            assert (await runtime.capacity()).tokens["workers"].used == 1
            assert f"what {job.id} holds" in await next_one.why()
            await job.cancel()
            assert (await job.wait()).state == "cancelled"
            assert (await next_one.wait()).state == "succeeded"
        assert [each.job for each in memory.launcher.stops] == [job.id]


async def test_what_it_prints_keeps_a_script_from_idling(tmp_path: Path) -> None:
    async def chat(job: ScriptedJob) -> None:
        for _ in range(3):
            await trio.sleep(400)
            job.print("still here")

    async with open_memory_runtime(chat) as runtime:
        app = make_repository(tmp_path / "app")
        job = await runtime.submit(app, ["x"], idle_timeout="10m")
        assert (await job.wait()).state == "succeeded"


async def test_a_script_learns_of_a_stop_when_it_comes(tmp_path: Path) -> None:
    cut = trio.Event()

    async def last(job: ScriptedJob) -> None:
        try:
            await trio.sleep_forever()
        finally:
            cut.set()

    async with open_memory_runtime(last) as runtime:
        job = await runtime.submit(make_repository(tmp_path / "app"), ["x"])
        async for event in job.events():
            if event.kind == "job_running":
                break
        await job.cancel()
        with trio.fail_after(60):
            await cut.wait()


async def test_a_nightly_schedule_comes_every_night(tmp_path: Path) -> None:
    nights: list[str] = []

    async def note(job: ScriptedJob) -> None:
        nights.append(job.id)

    app = make_repository(tmp_path / "app")
    async with open_memory_runtime(note) as runtime:
        nightly = await runtime.add_schedule(
            "nightly", app, {"argv": ["make"]}, cron="0 3 * * *", timezone="UTC"
        )
        await trio.sleep(48 * HOUR)
        assert len(nights) == 2
        assert (await nightly.show()).runs == 2


async def test_what_waits_is_run_by_the_next_runtime(tmp_path: Path) -> None:
    memory = InMemory(tmp_path / "home", script)
    app = make_repository(tmp_path / "app")
    async with memory.open() as runtime:
        await runtime.pause()
        waiting = await runtime.submit(app, ["greet"], env={"WHO": "me"})
    async with memory.open() as runtime:
        await runtime.resume()
        again = await runtime.job(waiting.id)
        assert (await again.wait()).state == "succeeded"


async def test_an_agent_is_played_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "_registered", {})

    async def play(job: ScriptedJob) -> int:
        job.tell(SessionKnown("s1"))
        job.tell(UsageAdded(Usage(input_tokens=100, output_tokens=20, cost=0.5)))
        job.print("this is no event")
        job.tell(Final(f"done: {job.prompt}", ok=True))
        return 0

    register(ScriptedAgent())
    app = make_repository(tmp_path / "app")
    async with open_memory_runtime(play) as runtime:
        job = await runtime.submit(app, ["play"], agent="scripted", prompt="do it")
        view = await job.wait()
        assert view.state == "succeeded", view.error
        assert view.agent is not None
        assert (view.agent.session, view.agent.text) == ("s1", "done: do it")


async def test_a_program_that_is_not_there_cannot_be_started(tmp_path: Path) -> None:
    memory = InMemory(tmp_path / "home", script)
    memory.missing.add("nothing")
    async with memory.open() as runtime:
        job = await runtime.submit(make_repository(tmp_path / "app"), ["nothing"])
        view = await job.wait()
        assert view.error is not None
        assert "there is no program nothing" in view.error.message


async def test_an_error_of_a_script_is_the_tests(tmp_path: Path) -> None:
    class Mistake(Exception):
        pass

    async def wrong(job: ScriptedJob) -> None:
        raise Mistake

    async def block() -> None:
        async with open_memory_runtime(wrong) as runtime:
            job = await runtime.submit(make_repository(tmp_path / "app"), ["x"])
            await job.wait()

    with pytest.raises(Mistake):
        await block()
