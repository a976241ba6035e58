"""Retry: jobs that have ended are made anew, a chain of them as a chain."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.requests import JobQuery
from forge_actors.domain.selection import Selection
from tests.runtime.control_kit import controlled
from tests.runtime.kit import running

if TYPE_CHECKING:
    from pathlib import Path

#: Succeeds from its second run on.
ONCE = ("sh", "-c", "test -e ran || { touch ran; exit 1; }")


async def test_a_retry_does_what_the_old_job_was_to_do(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        options = {
            "kind": "check",
            "priority": "P1",
            "claims": ["read:path:a"],
            "labels": ["x", "y"],
            "name": "n",
            "provider": "claude",
            "replay": "never",
            "max_attempts": 2,
            "timeout": 60,
            "env": {"A": "b"},
            "request_id": "r",
        }
        old = await case.submit("app", "sh", "-c", "exit 3", **options)
        await case.control.wait([old])
        [made] = await case.control.retry([old[-6:]], origin="job:z")
        assert made.retry_of == old
        assert not made.existing
        before, after = await case.control.wait([old, made.id])
        assert after.retry_of == old
        assert (after.origin, after.request_id) == ("job:z", None)
        assert after.state == "failed"
        for field in ("kind", "repo", "argv", "priority", "claims", "labels", "name"):
            assert getattr(after, field) == getattr(before, field), field
        for field in ("provider", "replay", "max_attempts", "cwd", "attempt"):
            assert getattr(after, field) == getattr(before, field), field


async def test_a_failed_chain_is_retried_as_one(tmp_path: Path) -> None:
    """Q-05: one command retries the chain."""
    async with controlled(tmp_path) as case:
        first = await case.submit("app", *ONCE)
        second = await case.submit("app", after=[first])
        third = await case.submit("app", after=[second])
        views = await case.control.wait([first, second, third])
        assert [view.state for view in views] == [
            "failed",
            "human_attention_required",
            "human_attention_required",
        ]
        failed = Selection(failed=True, unretried=True)
        chain = await case.control.select(failed)
        assert chain == [third, second, first]
        made = await case.control.retry(chain)
        assert [entry.retry_of for entry in made] == chain
        new = [entry.id for entry in made]
        views = await case.control.wait(new)
        assert {view.state for view in views} == {"succeeded"}
        assert [view.after for view in views] == [[new[1]], [new[2]], []]
        # What was retried is not failed work any more, though it still reads as it did.
        assert await case.control.select(failed) == []


async def test_a_dependency_that_succeeded_stays(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        first = await case.submit()
        second = await case.submit("app", "false", after=[first])
        await case.control.wait([second])
        [made] = await case.control.retry([second])
        [view] = await case.control.wait([made.id])
        assert (view.state, view.after) == ("failed", [first])


async def test_a_dependency_that_failed_must_be_retried_too(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        first = await case.submit("app", *ONCE)
        second = await case.submit("app", after=[first])
        other = await case.submit("app", "false")
        await case.control.wait([second, other])
        message = f"job {second} runs after {first}, which is failed: retry {first} too"
        with pytest.raises(Refused, match=message):
            await case.control.retry([other, second])
        assert len(await case.control.jobs(JobQuery())) == 3
        # It was retried on its own: what ran after it runs after that.
        [again] = await case.control.retry([first])
        [made] = await case.control.retry([second])
        [view] = await case.control.wait([made.id])
        assert (view.state, view.after) == ("succeeded", [again.id])


async def test_the_newest_retry_of_a_dependency_counts(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        first = await case.submit("app", "false")
        second = await case.submit("app", after=[first])
        await case.control.wait([second])
        [again] = await case.control.retry([first])
        await case.control.wait([again.id])
        with pytest.raises(Refused, match=f"runs after {again.id}, which is failed"):
            await case.control.retry([second])
        made = await case.control.retry([again.id, second])
        [view] = await case.control.wait([made[1].id])
        assert view.after == [made[0].id]


async def test_a_job_that_has_not_ended_is_not_retried(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        ended = await case.submit()
        await case.control.wait([ended])
        held = await case.hold()
        with pytest.raises(Refused, match=f"job {held} has not ended, it is running"):
            await case.control.retry([ended, held])
        with pytest.raises(NotFound):
            await case.control.retry([ended, "nowhere"])
        assert len(await case.control.jobs(JobQuery())) == 2
        await case.end(held)
        [made] = await case.control.retry([held])
        await case.end(made.id)


async def test_a_job_named_twice_is_retried_once(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        job = await case.submit()
        await case.control.wait([job])
        first, second = await case.control.retry([job, job])
        assert first == second
        await case.control.wait([first.id])
        assert len(await case.control.jobs(JobQuery())) == 2


async def test_a_retry_keeps_to_the_limit_of_jobs(tmp_path: Path) -> None:
    async with controlled(tmp_path, limits={"queued_jobs": 2}) as case:
        jobs = [await case.submit(), await case.submit()]
        await case.control.wait(jobs)
        held = await case.hold()
        with pytest.raises(Refused, match=r"would pass the limit of 2"):
            await case.control.retry(jobs)
        assert len(await case.control.jobs(JobQuery())) == 3
        await case.end(held)
        made = await case.control.retry(jobs)
        await case.control.wait([entry.id for entry in made])


async def test_a_unique_key_that_is_taken_gives_the_job_that_has_it(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        old = await case.submit("app", "false", unique="u")
        await case.control.wait([old])
        after = await case.submit("app", after=[old])
        await case.control.wait([after])
        held = await case.hold(unique="u")
        first, second = await case.control.retry([old, after])
        assert (first.id, first.existing) == (held, True)
        view = await case.control.job(second.id)
        assert (view.state, view.after) == ("waiting_for_dependency", [held])
        await case.end(held, second.id)


async def test_two_ends_of_one_unique_key_are_one_retry(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        jobs = []
        for _ in range(2):
            jobs.append(await case.submit("app", "false", unique="u"))
            await case.control.wait(jobs[-1:])
        first, second = await case.control.retry(jobs)
        assert (first.existing, second.existing) == (False, True)
        assert first.id == second.id
        await case.control.wait([first.id])


async def test_a_job_of_a_removed_repository_is_not_retried(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        job = await case.submit()
        await case.control.wait([job])
        await case.control.remove_repository("app")
        with pytest.raises(Refused, match="its repository 'app' was removed"):
            await case.control.retry([job])
        shutil.rmtree(tmp_path / "app")


async def test_a_provider_that_is_gone_is_named(tmp_path: Path) -> None:
    providers = {"local": {"limit": 1}}
    async with controlled(tmp_path, providers=providers) as case:
        job = await case.submit("app", provider="local")
        await case.control.wait([job])
    async with running(tmp_path / "home") as runtime:
        with pytest.raises(InvalidInput, match="'local' is no known provider"):
            await runtime.control.retry([job])
