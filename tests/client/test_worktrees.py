"""Worktrees by the client of other programs, and from a store that nothing serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.client import offline_worktrees
from forge_actors.client.aio import Client
from forge_actors.testing.service import fake_service
from tests.cli.test_worktree import worktree
from tests.runtime.test_isolation import opened

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_client_does_what_the_verb_does(tmp_path: Path) -> None:
    async with fake_service(tmp_path) as control:
        control.worktree_views["a"] = worktree("a", "x/a")
        client = Client(tmp_path)
        [view] = await client.worktrees()
        assert (view.id, view.size) == ("a", 2048)
        [view] = await client.worktrees(looking=False)
        assert view.size is None
        [view] = await client.keep_worktrees(["x/a"])
        assert view.kept
        [view] = await client.keep_worktrees(["a"], keep=False)
        assert not view.kept
        [plan] = await client.remove_worktrees(["a"], dry_run=True)
        assert plan.removed
        [done] = await client.remove_worktrees(["a"])
        assert done.removed
        assert await client.worktrees() == []
        assert len(await client.worktrees(removed=True)) == 1
        restored = await client.restore_worktree("x/a", tmp_path / "to")
        assert restored.path == str(tmp_path / "to")


async def test_a_store_that_nothing_serves_tells_of_them(tmp_path: Path) -> None:
    async with opened(tmp_path) as case:
        job = (await case.run("true")).id
        [served] = await case.control.worktrees(looking=False)
    [kept] = offline_worktrees.worktrees(str(tmp_path / "home"), removed=False)
    assert kept["id"] == job
    assert kept["path"] == served.path
    for name in ("branch", "state", "kept", "made_at", "base_commit", "job_state"):
        assert kept[name] == getattr(served, name), name
