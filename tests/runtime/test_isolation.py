"""Jobs in worktrees of their own, with the real git, agent and store."""

from __future__ import annotations

import os
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.events import EventQuery
from forge_actors.domain.requests import JobRequest
from tests.runtime.control_kit import Case, controlled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from forge_actors.domain.jobs import JobView


def git(folder: Path | str, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True
    )
    return done.stdout.decode().strip()


class Isolated(Case):
    """One with a checkout of some files, and jobs in worktrees of it."""

    @property
    def checkout(self) -> Path:
        return self.folder / "app"

    def settings(self, text: str) -> Path:
        path = self.checkout / ".git" / "forge-actors" / "settings.toml"
        path.write_text(text)
        return path

    async def run(self, script: str, **options: Any) -> JobView:
        [entry] = await self.control.submit(
            [JobRequest("app", ["sh", "-c", script], isolate=True, **options)]
        )
        [view] = await self.control.wait([entry.id])
        return view

    async def output(self, job: str, stream: str = "stdout") -> str:
        chunk = await self.control.read_log(job, stream, 0, limit=1 << 16)
        return chunk.data.decode()

    async def events(self, *kinds: str) -> list[dict[str, object]]:
        query = EventQuery(after=0, kind=kinds, limit=1000)
        page = await self.control.events(query, wait=False)
        return [event.data for event in page.events]


@asynccontextmanager
async def opened(folder: Path, **tables: Any) -> AsyncGenerator[Isolated, None]:
    async with controlled(folder, **tables) as case:
        (folder / "app" / "src").mkdir()
        (folder / "app" / "src" / "file").write_text("first\n")
        git(folder / "app", "add", "--all")
        git(folder / "app", "commit", "-q", "-m", "a file")
        yield Isolated(case.runtime, folder)


async def test_its_result_is_a_branch_and_the_checkout_stays_as_it_was(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as case:
        (case.checkout / "src" / "file").write_text("being edited\n")
        before = git(case.checkout, "rev-parse", "HEAD")
        view = await case.run(
            "pwd; cat src/file; echo new > new; git add new; git commit -qm new"
        )
        assert view.state == "succeeded"
        where = tmp_path / "home" / "worktrees"
        [folder] = [path for repo in where.iterdir() for path in repo.iterdir()]
        assert await case.output(view.id) == f"{folder}\nfirst\n"
        assert view.claims == [f"write:worktree:{view.id}"]
        assert view.worktree == {
            "state": "ready",
            "path": str(folder),
            "branch": f"forge/{view.id}",
            "base_commit": before,
        }
        branch = f"forge/{view.id}"
        assert git(case.checkout, "log", "-1", "--format=%s %P", branch) == (
            f"new {before}"
        )
        assert git(case.checkout, "status", "--porcelain") == "M src/file"
        assert git(case.checkout, "rev-parse", "HEAD") == before
        [made] = await case.events("worktree_made")
        assert (made["branch"], made["base_commit"]) == (branch, before)
        assert os.stat(folder).st_mode & 0o077 == 0 or (
            os.stat(where).st_mode & 0o077 == 0
        )


async def test_branch_base_and_sub_folder_are_those_that_it_asks_for(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as case:
        git(case.checkout, "branch", "old", "HEAD~1")
        old = git(case.checkout, "rev-parse", "old")
        view = await case.run(
            "git rev-parse HEAD; git symbolic-ref --short HEAD; ls",
            base="old",
            branch="topic/{name}/{repo}-{date}",
            name="fix it: now",
        )
        head, branch = (await case.output(view.id)).split()
        assert head == old
        assert branch.startswith("topic/fix-it-now/app-20")
        assert view.worktree is not None
        assert view.worktree["base"] == "old"
        there = await case.run("pwd", cwd=str(case.checkout / "src"))
        assert (await case.output(there.id)).endswith(f"/{there.id}/src\n")


async def test_a_branch_or_a_base_that_cannot_be_ends_it_with_the_way_out(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as case:
        git(case.checkout, "branch", "mine")
        for options, words in (
            ({"branch": "mine"}, "with --branch"),
            ({"base": "nowhere"}, "its base nowhere is no commit"),
        ):
            view = await case.run("true", **options)
            assert view.error is not None
            assert view.error.code == "WORKER_START_FAILED"
            assert words in view.error.message
        branches = git(case.checkout, "branch", "--format=%(refname:short)").split()
        main = git(case.checkout, "branch", "--show-current")
        assert sorted(branches) == sorted(["mine", main])
        assert git(case.checkout, "worktree", "list").count("\n") == 0


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"branch": "x/{what}"}, "branch"),
        ({"branch": "a b"}, "branch"),
        ({"base": "-x"}, "base"),
        ({"base": "x\n"}, "base"),
        ({"env": {"GIT_DIR": "/x"}}, "env"),
    ],
)
async def test_what_can_never_be_is_refused_when_it_is_submitted(
    options: dict[str, Any], field: str, tmp_path: Path
) -> None:
    async with opened(tmp_path) as case:
        with pytest.raises(InvalidInput) as refused:
            await case.run("true", **options)
        assert refused.value.field == field
        with pytest.raises(InvalidInput, match="isolate"):
            await case.submit("app", "true", branch="x")


async def test_git_never_leaves_a_worktree_for_a_repository_around_it(
    tmp_path: Path,
) -> None:
    """The home may be in one, for example in one's own folder of settings."""
    git(tmp_path, "init", "-q")
    async with opened(tmp_path) as case:
        view = await case.run("rm .git; git rev-parse --show-toplevel; echo $?")
        assert (await case.output(view.id)).strip() == "128"


async def test_variables_that_lead_git_elsewhere_do_not_reach_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path, worktrees={"automatic": True}) as case:
        monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
        await case.hold(kind="agent-run", read_only=False)
        [entry] = await case.control.submit(
            [
                JobRequest(
                    "app",
                    ["sh", "-c", "git rev-parse --show-toplevel; env"],
                    kind="agent-run",
                    env={"GIT_DIR": str(case.checkout / ".git")},
                )
            ]
        )
        [view] = await case.control.wait([entry.id])
        assert view.state == "succeeded"
        lines = (await case.output(view.id)).splitlines()
        assert lines[0].endswith(view.id)
        assert not [line for line in lines if line.startswith("GIT_DIR=")]
        assert f"GIT_CEILING_DIRECTORIES={tmp_path}/home/worktrees" in lines


async def test_an_agent_job_does_not_wait_for_a_checkout(tmp_path: Path) -> None:
    async with opened(tmp_path) as case:
        first = await case.hold(kind="agent-run", read_only=False)
        second = await case.hold(kind="agent-run", read_only=False)
        view = await case.control.job(second)
        assert view.worktree is not None
        assert view.worktree["instead_of"] == [first]
        told = (await case.control.why(second)).sentence
        assert f"in a worktree of its own on forge/{second}" in told
        assert f"since {first} had its checkout" in told
        [isolated] = await case.events("job_auto_isolated")
        assert isolated["blockers"] == [first]
        # Others wait, and one that is not to be isolated too.
        command = await case.submit("app", "true", read_only=False)
        here = await case.submit(
            "app", "true", kind="agent-run", read_only=False, isolate=False
        )
        for job in (command, here):
            assert (await case.why(job))[1]["holders"] == [first]
        await case.end(first, second)


async def test_a_retry_has_a_worktree_of_its_own(tmp_path: Path) -> None:
    async with opened(tmp_path) as case:
        old = await case.run("echo x > left; exit 1")
        [retried] = await case.control.retry([old.id])
        [new] = await case.control.wait([retried.id])
        assert new.claims == [f"write:worktree:{new.id}"]
        assert new.worktree is not None
        assert new.worktree["branch"] == f"forge/{new.id}"
        assert old.worktree is not None
        assert (Path(str(old.worktree["path"])) / "left").exists()


async def test_another_attempt_goes_on_in_the_same_worktree(tmp_path: Path) -> None:
    async with opened(tmp_path, retries={"first_delay": "0s"}) as case:
        view = await case.run(
            'echo "$FORGE_ATTEMPT" >> attempts; [ "$FORGE_ATTEMPT" = 2 ]',
            replay="always",
            max_attempts=2,
        )
        assert (view.state, view.attempt) == ("succeeded", 2)
        assert view.worktree is not None
        attempts = Path(str(view.worktree["path"])) / "attempts"
        assert attempts.read_text() == "1\n2\n"


async def test_another_attempt_does_not_go_on_at_another_branch(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, retries={"first_delay": "0s"}) as case:
        view = await case.run(
            "git switch -q -c other; exit 1", replay="always", max_attempts=2
        )
        assert view.error is not None
        assert view.error.code == "WORKER_START_FAILED"
        assert f"is at other, not at forge/{view.id}" in view.error.message


async def test_the_same_request_again_is_the_same_job(tmp_path: Path) -> None:
    async with opened(tmp_path) as case:
        request = JobRequest("app", ["true"], isolate=True, request_id="once")
        [one] = await case.control.submit([request])
        [other] = await case.control.submit([request])
        assert (other.id, other.existing) == (one.id, True)


async def test_one_that_can_have_no_worktree_waits_for_the_checkout_after_all(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as case:
        git(case.checkout, "branch", "taken")
        case.settings('[worktree]\nbranch = "taken"\n')
        first = await case.hold(kind="agent-run", read_only=False)
        where = JobRequest("app", ["pwd"], kind="agent-run", max_attempts=1)
        [entry] = await case.control.submit([where])
        async for event in case.runtime.events(after=0):
            if event.kind == "job_unisolated":
                told = event.data
                break
        assert "there is a branch taken that" in str(told["reason"])
        assert str(told["reason"]).endswith("; it waits for the checkout instead")
        view = await case.control.job(entry.id)
        assert (view.state, view.attempt) == ("waiting_for_workspace", 1)
        assert view.worktree is None
        assert view.claims == ["write:repo-content:*"]
        assert view.waiting is not None
        assert view.waiting["holders"] == [first]
        assert view.error is not None
        assert view.error.code == "WORKER_START_FAILED"
        await case.end(first)
        [view] = await case.control.wait([entry.id])
        assert (view.state, view.attempt) == ("succeeded", 2)
        assert await case.output(entry.id) == f"{case.checkout}\n"
        assert len(await case.events("job_auto_isolated")) == 1
        assert git(case.checkout, "worktree", "list").count("\n") == 0
