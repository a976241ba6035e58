"""`worktree` in front of a service, and without one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.worktree_views import WorktreeView
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell


def worktree(job: str, branch: str = "forge/work") -> WorktreeView:
    return WorktreeView(
        id=job,
        job_state="succeeded",
        repo="app",
        branch=branch,
        path=f"/home/worktrees/1/{job}",
        state="ready",
        base=None,
        base_commit="0" * 40,
        kept=False,
        reason=None,
        made_at="1970-01-01T00:00:30.000Z",
        removed_at=None,
        size=2048,
        uncommitted=2,
        unpushed=1,
    )


async def test_a_list_says_what_is_in_each_and_why_it_stays(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        job = await shell.submit()
        none = (0, "", "forge-actors: there are no worktrees\n")
        assert await shell("worktree", "list") == none
        view = structs.replace(worktree(job), stays="process 7 (vi\x1b[31m) uses it")
        control.worktree_views[job] = view
        status, out, _ = await shell("worktree", "list")
        assert status == 0
        assert "2 files, 1 commit " in out
        assert "uses it" in out
        assert "\x1b" not in out
        _, out, _ = await shell("worktree", "list", "--json")
        assert [each["id"] for each in json.loads(out)] == [job]
        _, out, _ = await shell("worktree", "list", "--json", "--quick")
        assert json.loads(out)[0]["size"] is None


async def test_they_are_removed_and_those_that_stay_are_told(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        goes, stays = [await shell.submit() for _ in range(2)]
        control.worktree_views[goes] = worktree(goes)
        control.worktree_views[stays] = structs.replace(
            worktree(stays, "forge/other"), stays="a job in it is running"
        )
        status, out, err = await shell("worktree", "remove", goes, stays, "--dry-run")
        assert (status, out) == (3, f"{goes}\n")
        assert "1 would be removed" in err
        status, out, err = await shell("worktree", "remove", goes, "forge/other")
        assert (status, out) == (3, f"{goes}\n")
        assert f"{stays} (forge/other) stays: a job in it is running" in err
        assert control.worktree_views[goes].state == "removed"
        status, out, _ = await shell("worktree", "remove", stays, "--force")
        assert (status, out) == (0, f"{stays}\n")


async def test_they_are_selected_by_what_their_jobs_are(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        good, bad = [await shell.submit() for _ in range(2)]
        control.worktree_views = {job: worktree(job, job) for job in (good, bad)}
        control.end(good)
        control.end(bad, "failed", exit_code=1)
        status, out, _ = await shell("worktree", "remove", "--state", "succeeded")
        assert (status, out) == (0, f"{good}\n")
        status, _, err = await shell("worktree", "remove", "--state", "succeeded")
        assert status == 3
        assert "no worktree is there" in err
        status, _, err = await shell("worktree", "remove")
        assert (status, "no worktree is selected" in err) == (2, True)
        assert (await shell("worktree", "remove", ""))[0] == 2


async def test_one_is_kept_and_let_go_again(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        job = await shell.submit()
        control.worktree_views[job] = worktree(job)
        assert await shell("worktree", "keep", job) == (0, f"{job}\n", "")
        assert control.worktree_views[job].kept
        assert (await shell("worktree", "unkeep", "forge/work"))[0] == 0
        assert not control.worktree_views[job].kept
        status, _, err = await shell("worktree", "keep", "unknown")
        assert (status, "no worktree" in err) == (2, True)


async def test_one_is_restored_where_it_was_or_at_a_path(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        job = await shell.submit()
        view = control.worktree_views[job] = worktree(job)
        assert (await shell("worktree", "restore", job))[0] == 3
        control.worktree_views[job] = structs.replace(view, state="removed")
        to = str(tmp_path / "here")
        assert await shell("worktree", "restore", job, "--to", to) == (0, f"{to}\n", "")
        # A branch is a name too, whatever is in it.
        restored = await shell("worktree", "restore", "forge/work")
        assert restored == (0, f"{view.path}\n", "")
        assert control.worktree_views[job].kept
