"""Schedules that wait for what happens in a real repository, over restarts."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import trio

from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.schedule_views import ScheduleRequest
from forge_actors.domain.scheduling import LOOK_AGAIN
from tests.runtime.control_kit import Case, controlled
from tests.runtime.kit import running

if TYPE_CHECKING:
    from pathlib import Path

JOB = {"argv": ["true"], "read_only": True}


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(folder: Path, name: str) -> str:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(path.read_text() + "more\n" if path.exists() else "text\n")
    git(folder, "add", name)
    git(folder, "commit", "-q", "-m", name)
    return git(folder, "rev-parse", "--short=12", "HEAD")


async def add(
    case: Case, name: str, on: str, *, argv: list[str] | None = None, **more: Any
) -> None:
    job = {**JOB, "name": name, **({"argv": argv} if argv else {})}
    request = ScheduleRequest(name=name, repo="app", job=job, on=on, **more)
    await case.control.add_schedule(request)


async def decided(case: Case, count: int) -> list[str]:
    """Wait until so many windows were decided; the schedule and the reason of each."""
    found: list[str] = []
    async for event in case.runtime.events(after=0):
        if event.kind == "schedule_decided":
            found.append(f"{event.data['schedule']}: {event.data['reason']}")
            assert event.data["decision"] == "run", event.data
        if len(found) == count:
            return found
    raise AssertionError("events do not end")


async def test_what_happens_in_a_repository_is_answered_once(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    async with controlled(tmp_path) as case:
        branch = git(folder, "branch", "--show-current")
        # It ends well only if it knows the commit.
        knows = ["sh", "-c", "git rev-parse -q --verify $FORGE_CAUSE_COMMIT^{commit}"]
        await add(case, "branch", f"branch:{branch}", argv=knows)
        await add(case, "file", "file:src/**")
        await add(case, "after", "succeeded:branch")
        await add(case, "both", "all:branch,file")
        for name in ("unborn", "other"):
            git(folder, "branch", name)
        first = commit(folder, "src/a")
        found = await decided(case, 4)
        assert sorted(each.partition(":")[0] for each in found) == [
            *("after", "both", "branch", "file")
        ]
        assert any(each.endswith(f"at {first}") for each in found)
        assert f"file: src/a changed in {first}" in found
        [told] = await case.control.next_times("both", 5)
        assert told.at is None
        assert told.reason.startswith("when a job of each of branch, file has")
    commit(folder, "docs")
    second = commit(folder, "docs")
    async with running(tmp_path / "home") as runtime:
        case = Case(runtime, tmp_path)
        found = (await decided(case, 6))[4:]
        assert sorted(each.partition(":")[0] for each in found) == ["after", "branch"]
        assert any(each.endswith(f"at {second}") for each in found)
        view = await case.control.schedule("branch")
        assert view.waits_for is not None
        assert second in view.waits_for
        assert (view.trigger, view.next) == (f"on branch:{branch}", None)
        assert view.definition["on"] == f"branch:{branch}"
        told_of = await case.control.occurrences("branch")
        assert [each.decision for each in told_of] == ["run", "run"]


class Looks:
    """Waits for what the looks at the checkout find."""

    def __init__(self, case: Case) -> None:
        self._control = case.control
        self._looked = trio.Event()
        case.control._looking.looked.append(self._heard)

    def _heard(self, _: str) -> None:
        self._looked.set()
        self._looked = trio.Event()

    async def until(self, *, clean: bool) -> None:
        while True:
            looked = self._looked
            status = (await self._control.repository("app")).status
            if status is not None and status.clean is clean:
                return
            await looked.wait()


async def test_a_checkout_that_becomes_clean_starts_what_waits(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    async with controlled(tmp_path) as case:
        job = {**JOB, "name": "held"}
        held = ScheduleRequest(
            name="held", repo="app", job=job, when_clean=True, on="ended:label:x"
        )
        await add(case, "clean", "clean")
        await case.control.add_schedule(held)
        held_in = (await case.control.repository("app")).id
        looks = Looks(case)
        await looks.until(clean=True)
        waits = (await case.control.schedule("clean")).waits_for
        assert waits == "the checkout becomes clean"
        case.control._looking._say_watched(held_in, "it has too many folders")
        waits = (await case.control.schedule("clean")).waits_for
        assert waits is not None
        assert "not watched (it has too many folders)" in waits
        (folder / "new").write_text("x")
        await looks.until(clean=False)
        await case.end(await case.submit("app", labels=["x"]))
        while not (view := await case.control.schedule("held")).waiting:
            pass  # the actor was told nothing yet
        assert "has changes" in view.waiting[0].reason
        (folder / "new").unlink()
        # By itself it would be looked at again only after a minute.
        with trio.fail_after(LOOK_AGAIN - 10.0):
            found = await decided(case, 2)
        assert {each.partition(":")[0] for each in found} == {"clean", "held"}
        assert any("the checkout is clean at " in each for each in found)


async def test_what_cannot_be_waited_for_is_refused(tmp_path: Path) -> None:
    async with controlled(tmp_path, status={"enabled": False}) as case:
        await case.add("lib")
        job = await case.submit("lib")
        with pytest.raises(Refused, match="nobody looks at checkouts"):
            await add(case, "a", "clean")
        with pytest.raises(NotFound, match="no job has the id"):
            await add(case, "a", "ended:job:nobody")
        with pytest.raises(InvalidInput, match="another repository"):
            await add(case, "a", f"ended:job:{job}")
        with pytest.raises(InvalidInput, match="not on and cron"):
            await add(case, "a", "ended:*", cron="@daily")
        own = await case.submit("app")
        await add(case, "a", f"ended:job:{own[-6:]}", every="5m")
        assert (await decided(case, 1))[0].startswith(f"a: job {own}")
        [view] = await case.control.schedules()
        assert (view.state, view.definition["every"]) == ("done", 300.0)
