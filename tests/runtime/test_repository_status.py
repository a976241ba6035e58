"""The git status of repositories in a runtime: live counts over what was saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from forge_actors.runtime import runtime
from tests.runtime.control_kit import Case, controlled

if TYPE_CHECKING:
    from pathlib import Path


async def until_told(case: Case) -> None:
    """Wait until a status changed."""
    async for event in case.runtime.events(after=0):
        if event.kind == "repository_status_changed":
            return


async def test_a_repository_is_shown_with_its_status_and_what_lives_in_it(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        held = await case.hold("app", claims=["write:path:src"], read_only=False)
        await case.submit("app", "true", claims=["write:path:src"])
        shown = await case.control.repository("app")
        assert (shown.waiting, shown.running) == (1, 1)
        [lease] = shown.leases
        assert (lease.job, lease.fence) == (held, shown.fence)
        assert lease.claims == ["write:path:src"]
        [listed] = await case.control.repositories()
        assert (listed.waiting, listed.running, listed.attention) == (1, 1, 0)


async def test_jobs_that_need_a_person_are_named(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        failed = await case.submit("app", "false")
        blocked = await case.submit("app", "true", after=[failed])
        await case.control.wait([blocked])
        shown = await case.control.repository("app")
        assert shown.attention == 1
        [attention] = shown.attention_jobs
        assert (attention.id, attention.state) == (blocked, "human_attention_required")
        assert attention.finished_at is not None
        [listed] = await case.control.repositories()
        assert listed.attention == 1


async def test_a_job_that_changes_files_changes_the_status(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        first = await case.submit("app", "true")
        await case.control.wait([first])
        while (await case.control.repository("app")).status.clean is None:
            await trio.lowlevel.checkpoint()
        assert case.runtime.control._looking.trouble == []
        await case.submit("app", "touch", "made")
        await until_told(case)
        shown = await case.control.repository("app")
        assert shown.status.untracked == 1
        assert shown.status.clean is False
        assert shown.status.age_ms is not None


async def test_readers_make_nobody_look(tmp_path: Path) -> None:
    async with controlled(tmp_path, status={"enabled": False}) as case:
        for _ in range(3):
            [listed] = await case.control.repositories()
            assert listed.status.clean is None
            shown = await case.control.repository("app")
            assert shown.status.observed_at is None
        assert listed.status.stale


async def test_looks_that_fail_over_and_over_end_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        async def sample(self, *_: object) -> None:
            raise RuntimeError("a bug")

    edges: Any = runtime.MACHINE._replace(sampler=Broken)
    monkeypatch.setattr(runtime, "MACHINE", edges)
    async with controlled(tmp_path) as case:
        job = await case.submit("app", "true")
        [view] = await case.control.wait([job])
        assert view.state == "succeeded"
        await looking_given_up(case)
        status = await case.control.status()
        assert status["ready"]
        assert "the status of repositories is not kept: RuntimeError: a bug" in str(
            status["degraded"]
        )
        job = await case.submit("app", "true")
        [view] = await case.control.wait([job])
        assert view.state == "succeeded"


async def looking_given_up(case: Case) -> None:
    await case.runtime.control._looking.ended.wait()
