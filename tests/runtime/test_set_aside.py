"""What was set aside, as people see it and get it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.cli.doctor import _set_aside
from forge_actors.cli.status import _aside
from forge_actors.domain.changes import SetAside
from forge_actors.domain.errors import Refused
from forge_actors.domain.events import Event
from forge_actors.domain.poison import Poison
from forge_actors.domain.requests import JobQuery
from tests.runtime.control_kit import controlled
from tests.runtime.kit import running

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_job_that_cannot_be_read_is_shown_and_taken_back(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with controlled(tmp_path) as case:
        await case.control.pause("all")
        bad = await case.submit("app", "true")
        good = await case.submit("app", "true", name="good")
        case.control._store._db.execute(
            "UPDATE job SET spec = x'7b' WHERE id = ?", (bad,)
        )
    async with running(home) as runtime:
        control = runtime.control
        await control.resume("all")
        assert (await control.wait([good]))[0].state == "succeeded"
        status: Any = await runtime.status()
        [aside] = status["poisoned"]
        assert (aside["repo"], aside["job"]) == ("app", bad)
        assert status["ready"]
        [check] = _set_aside(status["poisoned"])
        assert check.state == "broken"
        assert "forge-actors repo enable app tries again" in check.detail
        heading, line = _aside(status["poisoned"])
        assert (heading, aside["error"] in line) == ("set aside", True)

        why = await control.why(bad)
        assert why.state == "queued"
        assert why.waiting is not None
        assert why.waiting["kind"] == "policy"
        assert why.sentence.startswith("It cannot run: it was set aside")
        shown = {job.id: job for job in await control.jobs(JobQuery())}
        assert shown[bad].problem is not None
        assert "cannot be read" in shown[bad].problem
        assert shown[bad].waiting is not None
        assert shown[bad].waiting["kind"] == "policy"

        control._store._db.execute(
            "UPDATE job SET spec = (SELECT spec FROM job WHERE id = ?)", (good,)
        )
        await control.enable_repository("app", enabled=True)
        assert (await control.wait([bad]))[0].state == "succeeded"
        assert (await runtime.status())["poisoned"] == []


async def test_what_was_set_aside_can_be_cancelled_and_its_repository_removed(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with controlled(tmp_path) as case:
        await case.control.pause("all")
        one = await case.submit("app", "true")
        two = await case.submit("app", "true")
        after = await case.submit("app", "true", after=[one])
        case.control._store._db.execute("UPDATE job SET spec = x'7b'")
        case.control._store._db.execute(
            "UPDATE job SET spec = ? WHERE id = ?",
            (b'{"argv": ["true"], "cwd": "/"}', after),
        )
    async with running(home) as runtime:
        control = runtime.control
        assert len((await runtime.status())["poisoned"]) == 2  # type: ignore[arg-type]
        assert (await control.cancel(one)).state == "cancelled"
        [left] = (await runtime.status())["poisoned"]  # type: ignore[misc, attr-defined]
        assert left["job"] == two
        assert (await control.wait([after]))[0].state == "human_attention_required"
        await control.remove_repository("app", cancel=True)
        assert (await control.job(two)).state == "cancelled"
        assert (await runtime.status())["poisoned"] == []


async def test_a_job_that_may_run_is_not_cancelled_unseen(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        job = await case.hold()
        [repo] = case.control._registry.all()
        poison = Poison(repo.id, "it failed", 1.0, job)
        event = Event("job_set_aside", 1.0, repo.id, job, {"reason": "it failed"})
        await case.control._store.save([SetAside(poison, event)]).wait()
        with pytest.raises(Refused, match="was set aside while it ran"):
            await case.control.cancel(job)
        other = await case.submit("app", "sleep", "600")
        with pytest.raises(Refused, match="was set aside while it ran"):
            await case.control.cancel_all([other, job])
        why = await case.control.why(job)
        assert why.state == "running"
        assert "it was set aside" in why.sentence
        await case.control.enable_repository("app", enabled=True)
        await case.end(job, other)
