"""Worktrees of jobs that are listed, kept, removed and restored, all of it real."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.cleaning import CleanRequest
from forge_actors.domain.errors import NotFound, Refused
from forge_actors.edges.cleanup import process
from forge_actors.runtime.homes import REMOVED_LOG
from tests.runtime.test_isolation import Isolated, git, opened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.worktree_views import WorktreeRemoved


@pytest.fixture(autouse=True)
def in_line_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that is busy with other tests its turn would not come in time."""
    monkeypatch.setattr(process, "_put_last_in_line", lambda _: None)


DIRTY = "echo dirty > src/file; echo new > new; echo log > x.log"


async def removed(
    case: Isolated, names: Sequence[str], *, force: bool = False, dry_run: bool = False
) -> WorktreeRemoved:
    [done] = await case.control.remove_worktrees(names, force=force, dry_run=dry_run)
    return done


async def test_a_worktree_is_saved_removed_and_there_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as case:
        job = (await case.run(DIRTY)).id
        [view] = await case.control.worktrees()
        assert (view.id, view.repo, view.job_state) == (job, "app", "succeeded")
        assert (view.uncommitted, view.unpushed, view.stays) == (3, 0, None)
        assert view.size is not None
        tree = Path(view.path)

        done = await removed(case, [view.branch])
        assert (done.id, done.removed, done.reason) == (job, True, None)
        assert not os.path.lexists(tree)
        assert git(case.checkout, "show", f"{view.branch}:src/file") == "dirty"
        assert git(case.checkout, "show", f"{view.branch}:new") == "new"
        assert await case.control.worktrees() == []
        [view] = await case.control.worktrees(removed=True)
        assert view.state == "removed"
        with pytest.raises(Refused, match="is removed already"):
            await removed(case, [job])

        again = await case.control.restore_worktree(job[-6:])
        assert (again.path, again.branch) == (str(tree), view.branch)
        assert (tree / "src" / "file").read_text() == "dirty\n"
        told = git(tree, "status", "--porcelain").splitlines()
        assert [line.split()[1] for line in told] == ["src/file", "new", "x.log"]
        [view] = await case.control.worktrees()
        assert view.kept
        assert view.stays == "a person keeps it"
        await case.control.keep_worktrees([job], keep=False)
        assert (await removed(case, [job], dry_run=True)).removed
        assert tree.is_dir()
        other = (await case.run("true")).id
        assert (await removed(case, [other])).removed
        # What was begun can be asked for again in the same words.
        assert (await removed(case, [other, job])).id == job
        kinds = ("worktree_removed", "worktree_restored", "worktree_unkept")
        assert len(await case.events(*kinds)) == 5


async def test_a_worktree_in_use_stays_and_says_so(tmp_path: Path) -> None:
    async with opened(tmp_path) as case:
        job = await case.hold(isolate=True, read_only=False)
        done = await removed(case, [job])
        assert (done.removed, done.reason) == (False, "a job in it is running")
        await case.end(job)


async def test_what_is_not_known_is_not_removed(tmp_path: Path) -> None:
    async with opened(tmp_path) as case:
        for _ in range(2):
            await case.run("true")
        for name in ("", "nothing", "%", "____", "main"):
            with pytest.raises(NotFound, match="no worktree"):
                await removed(case, [name])
        assert len(await case.control.worktrees(looking=False)) == 2


async def test_a_removal_that_fails_is_told_as_failed(tmp_path: Path) -> None:
    async with opened(tmp_path) as case:
        job = (await case.run("true")).id
        [view] = await case.control.worktrees()
        around = Path(view.path).parent
        around.rename(around.with_name("moved"))
        around.symlink_to("moved")
        done = await removed(case, [job], force=True)
        assert not done.removed
        assert "link" in (done.reason or "")
        [now] = await case.control.worktrees()
        assert (now.state, now.reason) == ("ready", done.reason)


async def test_retention_removes_what_is_old_and_off_means_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    retention = {"worktrees": {"age": "1s"}}
    async with opened(tmp_path, retention=retention) as case:
        await case.run("true")
        await case.run(DIRTY)
        request = CleanRequest("", 0.0, classes=("worktrees",))
        views = await case.control.worktrees(looking=False)
        clock = case.control._clock  # type: ignore[attr-defined]
        later = clock.wall() + 10.0
        monkeypatch.setattr(clock, "wall", lambda: later)
        result = await case.control.clean(request)
        assert result.failure is None
        assert {each.what for each in result.removals} == {view.id for view in views}
        assert not any(os.path.lexists(view.path) for view in views)
        assert await case.control.worktrees() == []
        log = (case.runtime.home / REMOVED_LOG).read_text()
        assert all(view.id in log for view in views)


async def test_switched_off_nothing_is_removed_whatever_its_age(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    retention = {"worktrees": {"age": "1s", "keep": "all"}}
    async with opened(tmp_path, retention=retention) as case:
        await case.run("true")
        clock = case.control._clock  # type: ignore[attr-defined]
        later = clock.wall() + 10.0
        monkeypatch.setattr(clock, "wall", lambda: later)
        request = CleanRequest("", 0.0, classes=("worktrees",))
        result = await case.control.clean(request)
        assert result.removals == []
        assert len(await case.control.worktrees()) == 1


async def test_a_folder_that_was_deleted_by_hand_is_no_worktree_any_more(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as case:
        await case.run("git commit -q --allow-empty -m work")
        [view] = await case.control.worktrees()
        shutil.rmtree(view.path)
        result = await case.control.clean(CleanRequest("", 0.0, classes=("worktrees",)))
        assert result.failure is None
        assert await case.control.worktrees() == []
        assert view.path not in git(case.checkout, "worktree", "list")
        assert git(case.checkout, "log", "-1", "--format=%s", view.branch) == "work"
