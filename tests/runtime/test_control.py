"""Control: why a job waits, what is running, which repository is meant."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, Any

import pytest
import trio

from forge_actors.domain.errors import NotFound, Refused
from forge_actors.domain.open_files import OpenFiles
from forge_actors.domain.requests import JobQuery

if TYPE_CHECKING:
    from pathlib import Path


from tests.runtime.control_kit import controlled

# Why


async def test_why_a_job_waits_for_a_token(tmp_path: Path) -> None:
    async with controlled(tmp_path, limits={"workers": 2}) as case:
        await case.add("other")
        first, second = await case.hold(), await case.hold("other")
        third = await case.submit()
        fourth = await case.submit()
        explanation, waiting = await case.why(third)
        assert explanation.state == "queued"
        assert waiting["kind"] == "token"
        assert waiting["resource"] == "workers"
        assert (waiting["used"], waiting["limit"]) == (2, 2)
        assert set(waiting["holders"]) == {first, second}
        assert waiting["position"] == 1
        assert (await case.why(fourth))[1]["position"] == 2
        assert "2 of 2 workers are in use" in explanation.sentence
        assert "number 1 in line" in explanation.sentence
        assert first in explanation.sentence
        await case.end(first, second)
        assert {v.state for v in await case.control.wait([third, fourth])} == {
            "succeeded"
        }


async def test_why_a_job_waits_for_a_provider(tmp_path: Path) -> None:
    async with controlled(tmp_path, providers={"local": {"limit": 1}}) as case:
        first = await case.hold(provider="local")
        second = await case.submit(provider="local", kind="check")
        explanation, waiting = await case.why(second)
        assert waiting["resource"] == "provider:local"
        assert waiting["holders"] == [first]
        assert "1 of 1 local slots are in use" in explanation.sentence


async def test_why_a_job_waits_for_its_repository(tmp_path: Path) -> None:
    limits = {"workers": 4, "repository_workers": 1, "active_repositories": 1}
    async with controlled(tmp_path, limits=limits) as case:
        await case.add("other")
        first = await case.hold()
        here, there = await case.submit(), await case.submit("other")
        waiting = (await case.why(here))[1]
        assert waiting["resource"] == "repository_workers"
        assert (waiting["used"], waiting["limit"]) == (1, 1)
        assert waiting["holders"] == [first]
        explanation, waiting = await case.why(there)
        assert waiting["resource"] == "active_repositories"
        assert (waiting["used"], waiting["limit"]) == (1, 1)
        assert "1 of 1 active repositories are in use" in explanation.sentence


async def test_why_a_job_waits_for_a_claim(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        first = await case.hold(read_only=False, claims=["write:path:src"])
        second = await case.submit(claims=["read:path:src/deep", "read:path:doc"])
        explanation, waiting = await case.why(second)
        assert explanation.state == "waiting_for_workspace"
        assert waiting["kind"] == "claim"
        assert waiting["resource"] == "read:path:src/deep"
        assert waiting["holders"] == [first]
        assert f"conflicts with what {first} holds" in explanation.sentence


async def test_why_a_job_waits_for_another_job(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await case.add("other")
        first = await case.hold("other")
        second = await case.submit(after=[first])
        explanation, waiting = await case.why(second)
        assert explanation.state == "waiting_for_dependency"
        assert (waiting["kind"], waiting["holders"]) == ("dependency", [first])
        assert f"it runs after {first}" in explanation.sentence
        await case.end(first)
        [view] = await case.control.wait([second])
        assert view.state == "human_attention_required"
        assert "DEPENDENCY_BLOCKED" in (await case.control.why(second)).sentence


async def test_why_a_job_waits_for_a_reservation(tmp_path: Path) -> None:
    scheduling = {"overtake_after": "0s"}
    async with controlled(tmp_path, scheduling=scheduling) as case:
        holder = await case.hold(read_only=False, claims=["read:path:a"])
        starved = await case.submit(claims=["write:path:a"])
        late = await case.submit(claims=["read:path:a"])
        explanation, waiting = await case.why(late)
        assert waiting["kind"] == "reservation"
        assert waiting["holders"] == [starved]
        assert f"reserved for {starved}, which waited too long" in explanation.sentence
        assert (await case.why(starved))[1]["holders"] == [holder]
        await case.end(holder)
        first, second = await case.control.wait([starved, late])
        assert str(first.started_at) <= str(second.started_at)


async def test_why_of_what_runs_or_has_ended(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        job = await case.hold()
        explanation = await case.control.why(job)
        assert explanation.waiting is None
        assert explanation.sentence.startswith("It runs as process ")
        failed = await case.submit("app", "false")
        await case.control.wait([failed])
        sentence = (await case.control.why(failed)).sentence
        assert sentence == "It is failed: exit status 1 (EXIT_NONZERO)."
        good = await case.submit()
        await case.control.wait([good])
        assert (await case.control.why(good)).sentence == "It is succeeded."


# Jobs


async def test_jobs_are_listed_as_they_are_asked_for(tmp_path: Path) -> None:
    async with controlled(tmp_path, limits={"workers": 2}) as case:
        await case.add("other")
        held = await case.hold(labels=["night"], kind="check")
        done = await case.submit("other", labels=["night", "x"])
        await case.control.wait([done])
        more = await case.hold("other")
        waits = await case.submit("other")

        async def ids(**query: Any) -> list[str]:
            return [view.id for view in await case.control.jobs(JobQuery(**query))]

        assert await ids() == [waits, more, done, held]
        assert await ids(repo=["other"]) == [waits, more, done]
        assert await ids(state=["succeeded", "running"]) == [more, done, held]
        assert await ids(kind=["check"]) == [held]
        assert await ids(label=["night"]) == [done, held]
        assert await ids(label=["night", "x"]) == [done]
        assert await ids(active=True) == [waits, more, held]
        assert await ids(limit=2) == [waits, more]
        assert await ids(before=done) == [held]
        [view] = await case.control.jobs(JobQuery(state=["queued"]))
        assert view.waiting is not None
        assert view.waiting["kind"] == "token"
        with pytest.raises(NotFound):
            await ids(repo=["nowhere"])


async def test_a_job_is_found_by_prefix_and_tail(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        job = await case.hold()
        for selector in (job, job[:12], job[-6:]):
            assert (await case.control.job(selector)).id == job
        with pytest.raises(NotFound):
            await case.control.job(job[:3])
        await case.submit()
        with pytest.raises(Refused, match="could be any of"):
            await case.control.job(job[:4])


async def test_waiting_for_several_jobs_waits_for_all(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        held = await case.hold()
        done = await case.submit()
        await case.control.wait([done, done])
        finished = trio.Event()

        async def wait() -> None:
            views = await case.control.wait([done, held, done])
            assert [view.id for view in views] == [done, held, done]
            finished.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await case.control.job(done)
            assert not finished.is_set()
            await case.control.cancel(held)
        assert finished.is_set()


async def test_a_job_that_has_ended_is_cancelled_without_effect(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        done = await case.submit()
        [view] = await case.control.wait([done])
        assert await case.control.cancel(done) == view


# Status


async def test_status_counts_what_there_is(tmp_path: Path) -> None:
    async with controlled(
        tmp_path, limits={"workers": 2}, providers={"local": {"limit": 3}}
    ) as case:
        await case.add("other")
        held = [await case.hold(provider="local"), await case.hold("other")]
        await case.submit()
        done = await case.submit("other", "true", after=[])
        await case.control.cancel(done)
        status: Any = await case.control.status()
        workers = status["capacity"]["workers"]
        assert (workers["used"], workers["limit"]) == (2, 2)
        assert set(workers["jobs"]) == set(held)
        assert status["providers"]["local"]["used"] == 1
        assert status["providers"]["local"]["limit"] == 3
        assert status["providers"]["local"]["jobs"] == [held[0]]
        assert status["capacity"]["active_repositories"] == {"used": 2, "limit": 4}
        assert status["counts"] == {"queued": 1, "running": 2, "cancelled": 1}
        assert status["repositories"] == {"known": 2, "awake": 2}
        files = OpenFiles(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        assert status["open_files"] == {
            "limit": files.limit,
            "workers": files.workers,
            "connections": files.connections,
            "streams": files.streams(768, 2000),
            "short_of": [],
        }
        assert status["ready"]
        assert status["degraded"] == []
        assert status["pressure"] == {"active": False, "reason": None}
        assert status["service"]["home"] == str(tmp_path / "home")


async def test_a_store_that_cannot_save_shows_in_status(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        case.control._store.trouble = "database or disk is full"
        status: Any = await case.control.status()
        case.control._store.trouble = None
        assert not status["ready"]
        assert status["readiness"]["database"] == "fail"
        assert status["degraded"] == [
            "the store saves nothing: database or disk is full"
        ]


async def test_a_request_to_stop_is_only_a_request(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        case.control.request_stop()
        assert case.control.stop_requested.is_set()
        # It is answered, and acts, until somebody does what was asked for.
        assert (await case.control.status())["ready"] is False
        [view] = await case.control.wait([await case.submit()])
        assert view.state == "succeeded"
