"""A disabled repository starts nothing new, whatever was or becomes queued in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.requests import JobRequest
from tests.runtime.control_kit import controlled
from tests.runtime.kit import running

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_disabled_repository_starts_nothing_until_it_is_enabled(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path, limits={"workers": 1}) as case:
        held = await case.hold()
        queued = await case.submit()
        view = await case.control.enable_repository("app", enabled=False)
        assert (view.enabled, view.waiting, view.running) == (False, 1, 1)
        later = await case.submit()
        await case.control.cancel(held)
        assert (await case.control.wait([held]))[0].state == "cancelled"
        for job in (queued, later):
            why = await case.control.why(job)
            assert (why.state, why.waiting and why.waiting["kind"]) == (
                "queued",
                "disabled",
            )
        await case.control.enable_repository("app", enabled=True)
        states = {view.state for view in await case.control.wait([queued, later])}
        assert states == {"succeeded"}


async def test_it_stays_disabled_over_a_restart(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await case.control.enable_repository("app", enabled=False)
        [job] = await case.control.submit([JobRequest("app", ["true"])])
    async with running(tmp_path / "home") as runtime:
        [view] = await runtime.control.repositories()
        assert not view.enabled
        why = await runtime.control.why(job.id)
        assert why.sentence.startswith("It waits for its repository to be enabled")
        await runtime.control.enable_repository("app", enabled=True)
        [ended] = await runtime.control.wait([job.id])
        assert ended.state == "succeeded"


async def test_what_is_asked_of_a_job_does_not_overtake_it(tmp_path: Path) -> None:
    """Its repository's actor is known already, and the job on its way to it."""
    async with controlled(tmp_path) as case:
        await case.end(await case.hold())
        for _ in range(20):
            job = await case.submit("app", "sleep", "5")
            await case.control.cancel(job)
            [view] = await case.control.wait([job])
            assert view.state == "cancelled"


async def test_an_actor_that_just_ran_dry_learns_of_it_too(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await case.control.wait([await case.submit()])
        await case.control.enable_repository("app", enabled=False)
        why = await case.control.why(await case.submit())
        assert why.waiting is not None
        assert why.waiting["kind"] == "disabled"
