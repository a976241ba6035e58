"""Embedding: settings, the end, and requests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest
import trio
import trio.testing

import forge_actors
from forge_actors import (
    ForgeError,
    InvalidInput,
    NotFound,
    Refused,
    Unavailable,
    open_runtime,
)
from forge_actors.domain.requests import JobQuery, JobRequest
from tests.runtime.kit import (
    Leftovers,
    processes_with,
    running,
    settings,
)

if TYPE_CHECKING:
    from forge_actors import JobHandle, Runtime

from tests.runtime.embedding_kit import (
    home,  # noqa: F401 - a fixture
    lasting,  # noqa: F401 - a fixture
    repo,  # noqa: F401 - a fixture
    start_sleeping,
    temporary,  # noqa: F401 - a fixture
)


async def test_settings_that_are_wrong_start_nothing(
    home: Path, temporary: Path
) -> None:
    before = Leftovers()
    with pytest.raises(InvalidInput, match="did you mean 'workers'"):
        async with open_runtime(home, {"limits": {"wrokers": 1}}):
            pass
    home.mkdir(exist_ok=True)
    (home / "settings.toml").write_text("[limits]\nworkers = 0\n")
    with pytest.raises(InvalidInput, match=r"settings\.toml.*workers"):
        async with open_runtime(home):
            pass
    before.check()


async def test_a_home_without_settings_given_has_its_own(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    (home / "settings.toml").write_text("[limits]\nworkers = 7\nheavy_checks = 3\n")
    monkeypatch.setenv("FORGE_MAX_HEAVY_CHECKS", "1")
    async with open_runtime(home) as runtime:
        capacity: Any = (await runtime.status())["capacity"]
        assert capacity["workers"]["limit"] == 7
        assert capacity["heavy_checks"]["limit"] == 1


async def test_jobs_that_wait_survive_their_runtime(
    repo: Path, home: Path, lasting: str
) -> None:
    async with running(home, limits={"workers": 1}) as runtime:
        first = await start_sleeping(runtime, repo, lasting)
        second = await runtime.submit(repo, ["true"], read_only=True)
    async with running(home) as runtime:
        [view] = await runtime.control.wait([second.id])
        assert (view.state, view.exit_code) == ("succeeded", 0)
        assert (await runtime.control.job(first.id)).state == "cancelled"
        assert (await runtime.control.repositories())[0].name == "app"


async def test_a_cancelled_host_leaves_its_jobs_decided(
    repo: Path, home: Path, lasting: str
) -> None:
    with trio.CancelScope() as scope:
        async with running(home) as runtime:
            job = await start_sleeping(runtime, repo, lasting)
            scope.cancel()
            await trio.lowlevel.checkpoint()
    async with running(home) as runtime:
        view = await runtime.control.job(job.id)
        assert view.state == "cancelled"


async def test_two_runtimes_in_one_program_do_not_meet(
    repo: Path, tmp_path: Path
) -> None:
    before = Leftovers()
    async with running(tmp_path / "one") as one, running(tmp_path / "two") as two:
        first = await one.submit(repo, ["true"])
        second = await two.submit(repo, ["false"])
        assert (await first.wait()).state == "succeeded"
        assert (await second.wait()).state == "failed"
        with pytest.raises(NotFound):
            await one.control.job(second.id)
        third = await one.submit(repo, ["true"])
        assert (await third.wait()).fence == 2
    before.check()


# Jobs


async def test_a_waiting_job_is_cancelled_at_once(repo: Path) -> None:
    async with running(None, limits={"workers": 1}) as runtime:
        await runtime.submit(repo, ["sleep", "600"])
        waiting = await runtime.submit(repo, ["true"])
        view = await waiting.cancel()
        assert (view.state, view.attempt) == ("cancelled", 0)
        assert (await waiting.wait()).error == view.error
        assert "cancelled" in await waiting.why()


async def test_a_running_job_is_cancelled_with_its_whole_tree(
    repo: Path, lasting: str
) -> None:
    async with running(None) as runtime:
        job = await start_sleeping(runtime, repo, lasting)
        assert "runs as process" in await job.why()
        await job.cancel(grace=0.0)
        view = await job.wait()
        assert view.state == "cancelled"
        assert processes_with(lasting) == []


async def test_why_says_what_a_job_waits_for(repo: Path) -> None:
    async with running(None) as runtime:
        first = await runtime.submit(repo, ["sleep", "600"])
        second = await runtime.submit(repo, ["true"])
        third = await runtime.submit(repo, ["true"], after=[second.id])
        text = await second.why()
        assert text.startswith("It waits for a claim: write:repo-content:* conflicts")
        assert first.id in text
        assert f"runs after {second.id}" in await third.why()


async def test_who_waits_may_give_up(repo: Path) -> None:
    async with running(None) as runtime:
        job = await runtime.submit(repo, ["sleep", "600"])
        with trio.move_on_after(0.05) as scope:
            await job.wait()
        assert scope.cancelled_caught
        await job.cancel()
        assert (await job.wait()).state == "cancelled"


async def test_a_wait_in_a_host_task_ends_with_the_runtime(repo: Path) -> None:
    """Nobody waits for ever for a runtime that is gone."""
    failures: list[BaseException] = []

    async def wait(job: JobHandle) -> None:
        try:
            await job.wait()
        except Unavailable as error:
            failures.append(error)

    async with (
        trio.open_nursery() as nursery,
        running(None, limits={"workers": 1}) as runtime,
    ):
        await runtime.submit(repo, ["sleep", "600"])
        nursery.start_soon(wait, await runtime.submit(repo, ["true"]))
        await trio.testing.wait_all_tasks_blocked()
    assert len(failures) == 1


async def test_a_submit_after_the_end_is_refused(repo: Path) -> None:
    async with running(None) as runtime:
        await runtime.add_repository(repo)
    with pytest.raises(Exception) as caught:
        with trio.fail_after(30):
            await runtime.submit("app", ["true"])
    assert not isinstance(caught.value, trio.TooSlowError)


async def test_a_submit_during_the_stop_harms_nobody(
    repo: Path, lasting: str, home: Path
) -> None:
    results: list[object] = []

    async def keep_submitting(runtime: Runtime) -> None:
        while True:
            try:
                job = await runtime.submit("app", ["true"], read_only=True)
                results.append(job.id)
            except (ForgeError, apsw.Error) as error:
                results.append(error)
                return

    async with (
        trio.open_nursery() as nursery,
        running(home, limits={"workers": 1}) as runtime,
    ):
        await start_sleeping(runtime, repo, lasting)
        nursery.start_soon(keep_submitting, runtime)
        while not results:
            await trio.lowlevel.checkpoint()
    accepted = [entry for entry in results if isinstance(entry, str)]
    assert accepted
    async with running(home) as runtime:
        # What was acknowledged is there, however late it was.
        views = await runtime.control.wait(accepted)
        assert {view.state for view in views} == {"succeeded"}


async def test_events_tell_every_move_in_order(repo: Path) -> None:
    async with running(None) as runtime:
        await runtime.add_repository(repo)
        stream = runtime.events()
        job = await runtime.submit("app", ["true"])
        seen = []
        with trio.fail_after(30):
            async for event in stream:
                seen.append(event)
                if event.kind == "job_succeeded":
                    break
        kinds = [event.kind for event in seen]
        assert kinds == ["job_queued", "job_dispatched", "job_running", "job_succeeded"]
        assert {event.job for event in seen} == {job.id}
        numbers = [event.seq for event in seen]
        assert numbers == sorted(set(numbers))
        again = []
        async for event in runtime.events(after=0):
            again.append(event)
            if event.seq == numbers[-1]:
                break
        assert again[-4:] == seen
        assert again[0].kind == "runtime_started"
        assert [event.seq for event in again] == list(range(1, numbers[-1] + 1))


async def test_no_event_is_skipped_by_a_slow_reader(repo: Path) -> None:
    async with running(None) as runtime:
        await runtime.add_repository(repo)
        stream = runtime.events()
        requests = [
            JobRequest("app", ["true"], claims=["read:workspace"]) for _ in range(40)
        ]
        handles = await runtime.submit_all(requests)
        for handle in handles:
            await handle.wait()
        ended: list[str | None] = []
        with trio.fail_after(30):
            async for event in stream:
                if event.kind == "job_succeeded":
                    ended.append(event.job)
                if len(ended) == 40:
                    break
        assert sorted(map(str, ended)) == sorted(handle.id for handle in handles)


# Requests


async def test_a_request_id_names_one_job(repo: Path) -> None:
    async with running(None) as runtime:
        first = await runtime.submit(repo, ["true"], request_id="r1")
        again = await runtime.submit(repo, ["true"], request_id="r1")
        assert again.id == first.id
        await first.wait()
        assert (await runtime.submit(repo, ["true"], request_id="r1")).id == first.id
        with pytest.raises(Refused, match=f"belongs to job {first.id}"):
            await runtime.submit(repo, ["false"], request_id="r1")
        assert len(await runtime.jobs(JobQuery())) == 1


async def test_two_callers_with_one_request_id_make_one_job(repo: Path) -> None:
    async with running(None) as runtime:
        await runtime.add_repository(repo)
        ids: list[str] = []

        async def submit() -> None:
            job = await runtime.submit("app", ["true"], request_id="same")
            ids.append(job.id)

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(submit)
        assert len(set(ids)) == 1
        assert len(ids) == 5


async def test_a_unique_key_names_one_job_while_it_is_active(repo: Path) -> None:
    async with running(None) as runtime:
        await runtime.add_repository(repo)
        requests = [JobRequest("app", ["sleep", "600"], unique="nightly")]
        [first] = await runtime.control.submit(requests)
        [second] = await runtime.control.submit(requests)
        assert not first.existing
        assert (second.id, second.existing) == (first.id, True)
        await runtime.control.cancel(first.id)
        await runtime.control.wait([first.id])
        [third] = await runtime.control.submit(requests)
        assert third.id != first.id


async def test_a_batch_is_accepted_whole_or_not_at_all(repo: Path) -> None:
    async with running(None) as runtime:
        await runtime.add_repository(repo)
        good = JobRequest("app", ["true"], name="good")
        bad = JobRequest("app", ["true"], kind="party")
        with pytest.raises(InvalidInput, match=r"jobs\[1\]\.kind: 'party'"):
            await runtime.submit_all([good, bad])
        assert await runtime.jobs(JobQuery()) == []
        later = JobRequest("app", ["true"], name="later", after=["good"])
        first, second = await runtime.submit_all([later, good])
        assert (await runtime.control.job(first.id)).after == [second.id]
        assert (await first.wait()).state == "succeeded"


async def test_an_unknown_option_is_refused_with_the_nearest_one(repo: Path) -> None:
    async with running(None) as runtime:
        with pytest.raises(InvalidInput, match="did you mean 'priority'"):
            await runtime.submit(repo, ["true"], prioritty="P0")
        with pytest.raises(NotFound, match="no repository is called 'nowhere'"):
            await runtime.submit("nowhere", ["true"])


async def test_what_cannot_be_waited_for_is_named(repo: Path) -> None:
    async with running(None) as runtime:
        with pytest.raises(NotFound):
            await runtime.control.wait(["0000000000000000000"])
        with pytest.raises(InvalidInput, match="after: "):
            await runtime.submit(repo, ["true"], after=["0000"])


def test_the_public_names_are_those_of_the_package() -> None:
    for name in forge_actors.__all__:
        assert getattr(forge_actors, name).__name__ == name
    with pytest.raises(AttributeError):
        _ = forge_actors.nothing  # type: ignore[attr-defined]
    assert settings()["pressure"]
