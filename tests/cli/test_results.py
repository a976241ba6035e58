"""`diff` and `apply`, and how `show` tells what a job did."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.cli.diff import MAX_DIFF as SHOWN
from forge_actors.domain.results import MAX_DIFF, ChangedFile, Commit, JobResult
from forge_actors.testing.service import fake_service
from tests.cli.test_terminal import EVIL, on_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell


async def test_a_diff_is_exact_in_a_pipe_and_harmless_on_a_terminal(
    tmp_path: Path, shell: Shell
) -> None:
    patch = f"diff --git a/x b/x\n+{EVIL}\n".encode()
    async with fake_service(tmp_path) as control:
        job = await shell.submit()
        control.diffs = {
            (job, "patch"): patch,
            (job, "stat"): b" x | 1 +\n",
            (job, "names"): b"x\n",
        }
        assert await shell("diff", job) == (0, patch.decode(), "")
        assert (await shell("diff", job, "--stat"))[1] == " x | 1 +\n"
        assert (await shell("diff", job, "--name-only"))[1] == "x\n"
        status, _, err = await shell("diff", job, "--stat", "--name-only")
        assert (status, "not allowed with" in err) == (2, True)
        words = ("diff", job, "--home", str(tmp_path))
        status, printed = await trio.to_thread.run_sync(on_terminal, tmp_path, *words)
        assert (status, printed) == (0, b"diff --git a/x b/x\r\n+redturned\r\n")


async def test_a_diff_that_is_too_long_says_so(tmp_path: Path, shell: Shell) -> None:
    assert SHOWN == MAX_DIFF  # written twice, as the other one costs imports
    async with fake_service(tmp_path) as control:
        job = await shell.submit()
        control.diffs[job, "patch"] = b"x" * MAX_DIFF
        assert await shell("diff", job) == (0, "x" * MAX_DIFF, "")
        control.diffs[job, "patch"] = b"x" * (MAX_DIFF + 1)
        status, out, err = await shell("diff", job)
        assert (status, len(out)) == (0, MAX_DIFF)
        assert "that is not all" in err


async def test_apply_prints_the_commit_and_passes_on_how_it_is_to_be_done(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        job = await shell.submit()
        status, out, err = await shell("apply", job)
        assert (status, out) == (3, "")
        assert "no worktree of its own" in err
        control.diffs[job, "patch"] = b""
        status, out, err = await shell("apply", job)
        assert (status, out) == (0, f"{'0' * 40}\n")
        assert "forge/x are in main (fast-forward) in /app" in err
        for option in ("--ff-only", "--merge", "--cherry-pick"):
            await shell("apply", job, option)
        _, out, _ = await shell("apply", job, "--commit-first", "--json")
        assert json.loads(out)["into"] == "main"
        assert control.applied == [
            (job, "auto", False),
            (job, "ff-only", False),
            (job, "merge", False),
            (job, "cherry-pick", False),
            (job, "auto", True),
        ]


async def test_show_tells_what_a_job_did_below_everything_else(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        job = await shell.submit()
        view = structs.replace(control.views[job], worktree={"state": "ready"})
        control.views[job] = view
        control.results[job] = JobResult(
            "forge/x",
            "0" * 40,
            commits=(Commit("1" * 40, EVIL),),
            commit_count=1,
            files=(
                ChangedFile("new\x1b[2Aname", "R", 1, 2, "old"),
                ChangedFile("picture", "A"),
            ),
            file_count=30,
            added=5,
            deleted=7,
            uncommitted=3,
            note="something was left out",
        )
        page = (await shell("show", job))[1].splitlines()
        assert page[-6:] == [
            "changes  on forge/x: 1 commit, 30 files (+5 -7), 3 not committed",
            "  something was left out",
            f"  {'1' * 12} redturned",
            "  R old → newname (+1 -2)",
            "  A picture (binary)",
            "  … and 28 more",
        ]
        control.results[job] = JobResult("forge/x", "0" * 40, note="it is gone")
        page = (await shell("show", job))[1].splitlines()
        assert page[-2:] == ["changes  on forge/x: not known", "  it is gone"]
