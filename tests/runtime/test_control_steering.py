"""Holds, pauses and edits as a caller of a runtime sees them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.domain.errors import ForgeError, InvalidInput, Outdated, Refused
from forge_actors.domain.events import EventQuery
from forge_actors.domain.requests import JobEdit
from tests.runtime.control_kit import controlled
from tests.runtime.kit import running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.runtime.control_kit import Case

CONTENT = {"claims": ["write:repo-content:*"]}


async def blocked(case: Case) -> tuple[str, str]:
    """A job that runs and one that waits for its claim."""
    holder = await case.hold(claims=CONTENT["claims"], read_only=False)
    return holder, await case.submit(claims=CONTENT["claims"])


async def test_a_held_job_says_so_and_how_it_goes_on(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        holder, job = await blocked(case)
        view = await case.control.hold(job[-6:])
        assert view.waiting is not None
        assert (view.state, view.waiting["kind"]) == ("queued", "pause")
        explanation, waiting = await case.why(job)
        assert f"it is held; forge-actors unhold {job} lets it go on" in (
            explanation.sentence
        )
        assert waiting["kind"] == "pause"
        await case.end(holder)
        view = await case.control.unhold(job)
        [ended] = await case.control.wait([job])
        assert ended.state == "succeeded"
        with pytest.raises(Refused, match=f"job {job} has ended .succeeded.: too late"):
            await case.control.hold(job)


async def test_a_paused_job_shows_it_and_why_says_by_what(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        job = await case.hold()
        assert not (await case.control.job(job)).paused
        view = await case.control.pause_job(job)
        assert (view.state, view.paused) == ("running", True)
        sentence = (await case.control.why(job)).sentence
        assert f"somebody paused it; forge-actors resume {job}" in sentence
        assert "since 0 s" in sentence
        await case.control.pause("all", jobs=True)
        view = await case.control.resume_job(job)
        assert view.paused, "the pause of everything covers it too"
        assert "everything is paused" in (await case.control.why(job)).sentence
        await case.control.resume("all")
        assert not (await case.control.job(job)).paused
        await case.end(job)


async def test_pauses_are_listed_with_the_names_of_repositories(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        folder = tmp_path / "app"
        await case.control.pause("repo:app")
        await case.control.pause("provider:codex")
        pauses = await case.control.pause(f"repo:{folder}")
        assert [pause.scope for pause in pauses] == ["provider:codex", "repo:app"]
        status = await case.control.status()
        listed = status["pauses"]
        assert isinstance(listed, list)
        assert [pause["scope"] for pause in listed] == ["provider:codex", "repo:app"]
        assert re.fullmatch(r"[0-9T:.-]+Z", listed[0]["since"])
        providers = status["providers"]
        assert isinstance(providers, dict)
        states = {name: entry["state"] for name, entry in providers.items()}
        assert states["codex"] == "paused"
        assert states["claude"] == "open"
        _, waiting = await case.why(await case.submit())
        assert waiting["detail"].startswith("its repository is paused")
        assert await case.control.resume("provider:codex") == pauses[1:]
        assert await case.control.resume("provider:codex") == pauses[1:]


@pytest.mark.parametrize(
    ("scope", "field", "allowed"),
    [
        ("repo:ap", "repo", "app"),
        ("provider:cod", "provider", "codex"),
        ("everything", "scope", "all"),
    ],
)
async def test_a_scope_that_is_none_is_told_with_those_there_are(
    tmp_path: Path, scope: str, field: str, allowed: str
) -> None:
    async with controlled(tmp_path) as case:
        for move in (case.control.pause, case.control.resume):
            with pytest.raises(InvalidInput) as caught:
                await move(scope)
            assert caught.value.field == field
            assert allowed in caught.value.allowed
        assert (await case.control.status())["pauses"] == []


async def test_holds_and_pauses_outlive_the_runtime(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await case.control.pause("repo:app")
        held = await case.submit()
        await case.control.hold(held)
    async with running(tmp_path / "home") as runtime:
        status = await runtime.status()
        assert [p["scope"] for p in status["pauses"]] == ["repo:app"]  # type: ignore[attr-defined]
        await runtime.control.resume("repo:app")
        free = await runtime.submit("app", ["true"], read_only=True)
        assert (await free.wait()).state == "succeeded"
        view = await runtime.control.job(held)
        assert view.waiting is not None
        assert view.waiting["kind"] == "pause"
        await runtime.control.resume_job(held)
        [ended] = await runtime.control.wait([held])
        assert ended.state == "succeeded"


async def test_a_pause_ends_with_its_repository(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await case.control.pause("repo:app")
        await case.control.remove_repository("app")
        assert (await case.control.status())["pauses"] == []


async def test_an_edit_changes_what_is_given(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        holder, job = await blocked(case)
        edit = JobEdit(priority="P0", labels=["x", "x"], timeout="5m", claims=[])
        view = await case.control.edit(job, edit)
        assert (view.priority, view.labels) == ("P0", ["x"])
        assert view.budgets == {"execution": 300.0}
        assert view.claims == ["write:repo-content:*"], "as a submission without any"
        view = await case.control.edit(job, JobEdit(claims=["read:workspace"]))
        [claim] = view.claims
        assert claim.startswith("read:workspace")
        page = await case.control.events(EventQuery(kind=("job_edited",)), wait=False)
        first, second = (event.data["changed"] for event in page.events)
        assert first == {
            "priority": "P0",
            "claims": [["write", "repo-content", "*", ""]],
            "labels": ["x"],
        } | {"timeout": 300.0}
        folder = str(tmp_path / "app")
        assert second == {"claims": [["read", "workspace", "", folder]]}
        with pytest.raises(Refused, match="runs: only a job that waits"):
            await case.control.edit(holder, JobEdit(priority="P0"))
        await case.end(holder, job)


async def test_an_edit_with_the_mark_of_what_was_read_sees_every_change_since(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        holder, job = await blocked(case)
        control, outcomes = case.control, list[object]()

        async def edit(mark: str, label: str) -> None:
            try:
                view = await control.edit(job, JobEdit(labels=[label]), mark=mark)
            except Outdated as error:
                outcomes.append(str(error))
            else:
                outcomes.append(view.labels)

        mark = await control.job_mark(job)
        # Both are on their way at once, and one is made first.
        async with trio.open_nursery() as nursery:
            nursery.start_soon(edit, mark, "one")
            nursery.start_soon(edit, mark, "two")
        refused = f"job {job} is not as it was when it was read: read it again"
        outcomes.remove(refused)
        assert outcomes in ([["one"]], [["two"]])
        mark = await control.job_mark(job)
        await control.hold(job)
        await edit(mark, "three")
        assert outcomes[1:] == [refused]
        await edit(await control.job_mark(job), "four")
        assert outcomes[2:] == [["four"]]
        await case.end(holder)


async def test_a_budget_is_changed_for_the_run_and_can_be_taken_away(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        holder = await case.hold(claims=CONTENT["claims"], read_only=False)
        job = await case.submit("app", "sleep", "600", claims=CONTENT["claims"])
        await case.control.edit(job, JobEdit(timeout="1s"))
        kept = await case.submit(claims=CONTENT["claims"], queue_timeout="1s")
        await case.control.edit(kept, JobEdit(queue_timeout="none"))
        await case.end(holder)
        ended = await case.control.wait([job, kept])
        assert [view.state for view in ended] == ["timed_out", "succeeded"]


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (JobEdit(), "edit: names nothing to change .allowed: priority, claims"),
        (JobEdit(priority="P9"), "priority: 'P9' is no priority .allowed: P0"),
        (JobEdit(claims=["eat:path:x"]), "claims: "),
        (JobEdit(timeout="0.1s"), "timeout: '0.1s' is outside 1s to 30d"),
        (JobEdit(idle_timeout="soon"), "idle_timeout: 'soon' is no duration"),
        (JobEdit(labels=[""]), "labels: has 1 to"),
        (JobEdit(labels=["after"], priority="p0"), "priority: 'p0' is no priority"),
    ],
)
async def test_an_edit_is_checked_like_a_submission_and_changes_nothing_if_it_is_not(
    tmp_path: Path, edit: JobEdit, problem: str
) -> None:
    async with controlled(tmp_path) as case:
        await case.control.pause("all")
        job = await case.submit(labels=["before"])
        before = await case.control.job(job)
        with pytest.raises(ForgeError, match=problem):
            await case.control.edit(job, edit)
        assert await case.control.job(job) == before
