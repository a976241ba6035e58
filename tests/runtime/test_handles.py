"""What an embedding program does with its handles, in a real runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors import InvalidInput, NotFound, Refused
from tests.runtime.kit import make_repository, running

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors import EventView, JobHandle, Runtime


async def test_jobs_of_a_repository(tmp_path: Path) -> None:
    async with running(None) as runtime:
        app = await runtime.add_repository(make_repository(tmp_path / "app"))
        assert [each.id for each in await runtime.repositories()] == [app.id]
        assert (await runtime.repository("app")).path == str(tmp_path / "app")
        await _a_job_is_followed(await app.submit(["sh", "-c", "echo a; echo b >&2"]))
        await _a_job_is_steered(runtime, await app.submit(["true"], labels=["x"]))
        await app.disable()
        waiting = await app.submit(["true"], read_only=True)
        assert "disabled" in await waiting.why()
        assert [view.id for view in await app.jobs(active=True)] == [waiting.id]
        assert (await app.show()).waiting == 1
        with pytest.raises(Refused):
            await app.remove()
        await app.enable()
        assert (await waiting.wait()).state == "succeeded"
        await app.pause()
        held = await app.submit(["true"])
        assert "pause" in await held.why()
        await app.resume()
        await runtime.wait_idle()
        assert (await (await runtime.job(held.id)).show()).state == "succeeded"
        with pytest.raises(InvalidInput, match="one text"):
            await app.submit("true")
        await app.remove()
        with pytest.raises(NotFound):
            await app.show()
        await runtime.drain()


async def _a_job_is_followed(job: JobHandle) -> None:
    told: list[EventView] = [event async for event in job.events()]
    assert told[0].kind == "job_queued"
    assert told[-1].kind == "job_succeeded"
    assert {event.job for event in told} == {job.id}
    later = [event.kind async for event in job.events(after=told[-2].seq)]
    assert later == ["job_succeeded"]
    assert [piece async for piece in job.output()] == [b"a\n"]
    assert await job.read("stderr") == b"b\n"


async def _a_job_is_steered(runtime: Runtime, job: JobHandle) -> None:
    await job.wait()
    again = await job.retry()
    assert (await again.wait()).retry_of == job.id
    await runtime.pause()
    third = await job.retry()
    with pytest.raises(InvalidInput):
        await third.edit(nothing="like this")
    assert (await third.edit(priority="P0")).priority == "P0"
    await third.hold()
    await runtime.resume()
    assert "held" in await third.why()
    with pytest.raises(Refused):
        await third.answer("yes")
    with pytest.raises(Refused):
        await third.go_on("more")
    await third.unhold()
    assert (await third.wait()).state == "succeeded"
    assert [v.id for v in await runtime.jobs(label=["x"], limit=1)] == [third.id]


async def test_schedules_capacity_and_settings(tmp_path: Path) -> None:
    app = make_repository(tmp_path / "app")
    async with running(None, limits={"workers": 2}) as runtime:
        nightly = await runtime.add_schedule(
            "nightly", app, {"argv": ["true"]}, cron="0 3 * * *", timezone="UTC"
        )
        assert [each.name for each in await runtime.schedules()] == ["nightly"]
        assert (await (await runtime.schedule("nightly")).show()).runs == 0
        times = await nightly.next_times(2)
        assert [each.at[11:16] for each in times if each.at] == ["03:00", "03:00"]
        changed = await nightly.edit(cron="30 4 * * *")
        assert (changed.revision, changed.definition["cron"]) == (2, "30 4 * * *")
        assert changed.definition["timezone"] == "UTC"
        with pytest.raises(InvalidInput):
            await nightly.edit(cron="never")
        ran = await nightly.run("r1")
        async for event in runtime.events(after=0):
            if event.kind == "job_succeeded":
                break
        [became] = await nightly.occurrences()
        assert (became.id, became.job) == (ran.id, event.job)
        await nightly.pause()
        assert (await nightly.resume()).state == "active"
        await nightly.remove()
        with pytest.raises(NotFound):
            await nightly.show()
        await _limits_change(runtime)


async def _limits_change(runtime: Runtime) -> None:
    before = await runtime.capacity()
    assert before.tokens["workers"].limit == 2
    wanted = {"limits": {"workers": 5}, "providers": {"codex": {"limit": 1}}}
    changed = {each.name: each.new for each in await runtime.change_settings(wanted)}
    assert changed == {"limits.workers": 5, "providers.codex.limit": 1}
    after = await runtime.capacity()
    assert (after.tokens["workers"].limit, after.providers["codex"].limit) == (5, 1)
    assert after.active_repositories == before.active_repositories
    views = {each.name: each for each in await runtime.settings_in_force()}
    assert views["limits.workers"].value == 5
    assert await runtime.change_settings({"limits": {"workers": 5}}) == []
    with pytest.raises(InvalidInput, match=r"limits\.workers"):
        await runtime.change_settings({"limits": {"workers": -1}})
    with pytest.raises(Refused, match=r"gateway\.streams.* open_runtime"):
        await runtime.change_settings({"gateway": {"streams": 3}})
    with pytest.raises(Refused, match="given by the program"):
        await runtime.reload_settings()
    await runtime.pause("provider:codex")
    assert (await runtime.capacity()).providers["codex"].state == "paused"
    with trio.fail_after(30):
        await runtime.drain()
        await runtime.undrain()
