"""Worktrees of one large repository: twelve side by side, and one after another."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import trio

from benchmarks.repositories import make_large
from benchmarks.rows import Bench, Sample
from forge_actors.domain.branches import BranchNames
from forge_actors.domain.worktrees import Worktree, WorktreeWanted
from forge_actors.edges.git.worktrees import GitWorktrees

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: Worktrees that are made in each way.
COUNT = 12


def measure(bench: Bench) -> Iterable[Sample]:
    """Both ways in turn, each in the same repository and into a new home."""
    folder = bench.folder / f"worktrees-{time.monotonic_ns()}"
    repository = make_large(folder / "large", bench.files)
    one_by_one = trio.run(partial(_make, repository, folder / "one", at_once=False))
    together = trio.run(partial(_make, repository, folder / "all", at_once=True))
    note = f"{COUNT} of a repository with {bench.files} files"
    yield Sample("worktrees-in-turn", one_by_one, "s", f"{note}, one after another")
    yield Sample("worktrees", together, "s", f"{note}, all at once")


async def _make(repository: Path, home: Path, *, at_once: bool) -> float:
    worktrees = GitWorktrees()
    begin = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for number in range(COUNT):
            wanted = _wanted(repository, home, f"{home.name}-{number}")
            if at_once:
                nursery.start_soon(_one, worktrees, wanted)
            else:
                await _one(worktrees, wanted)
    return time.perf_counter() - begin


async def _one(worktrees: GitWorktrees, wanted: WorktreeWanted) -> None:
    plan = await worktrees.plan(wanted)
    known = Worktree(
        wanted.job,
        wanted.repo,
        wanted.path,
        plan.branch,
        0.0,
        base_commit=plan.base_commit,
    )
    await worktrees.make(wanted, known)


def _wanted(repository: Path, home: Path, job: str) -> WorktreeWanted:
    path = f"worktrees/large/{job}"
    return WorktreeWanted(
        job=job,
        repo="large",
        common_dir=str(repository / ".git"),
        folder=f"{home}/{path}",
        path=path,
        ceiling=f"{home}/worktrees",
        cwd=str(repository),
        base=None,
        pattern=None,
        default_pattern="forge/{job}",
        names=BranchNames(job, "large", "job", "2026-01-31"),
        seconds=600.0,
    )
