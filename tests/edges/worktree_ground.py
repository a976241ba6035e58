"""Where the tests make worktrees: a real repository, a home, and ways to break off."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import trio

from forge_actors.domain.branches import BranchNames
from forge_actors.domain.worktrees import MadeWorktree, Worktree, WorktreeWanted
from forge_actors.edges.git.worktrees import GitWorktrees
from forge_actors.testing.worktree_contract import planned

#: Makes a worktree like a runtime of its own, which can be killed.
MAKER = """\
import sys, msgspec, trio
from forge_actors.domain.worktrees import Worktree, WorktreeWanted
from forge_actors.edges.git.worktrees import GitWorktrees
wanted = msgspec.json.decode(sys.argv[1], type=WorktreeWanted)
known = msgspec.json.decode(sys.argv[2], type=Worktree)
trio.run(GitWorktrees().make, wanted, known)
"""
#: A git that ends whoever started it, before or after the call with one number.
DEADLY_GIT = """\
#!/bin/sh
count=$(($(cat {count}) + 1))
echo $count > {count}
if [ $count = {nth} ] && [ {when} = before ]; then kill -9 $PPID; exit 1; fi
{git} "$@"
code=$?
if [ $count = {nth} ]; then kill -9 $PPID; fi
exit $code
"""


def git(folder: Path | str, *arguments: str, check: bool = True) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        check=check,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


class GitGround:
    """The `Ground` of the contract over real git repositories."""

    def __init__(
        self, tmp_path: Path, *options: str, cut_at: int = 4, when: str = "before"
    ) -> None:
        self.repo = tmp_path / "app"
        self.home = tmp_path / "home"
        self.bin = tmp_path / "bin"
        self._cut_at, self._when = cut_at, when
        for folder in (self.repo, self.home, self.bin):
            folder.mkdir()
        git(self.repo, "init", "-q", "-b", "main", *options)
        (self.repo / "folder").mkdir()
        (self.repo / "file").write_text("file\n")
        (self.repo / "folder" / "inner").write_text("inner\n")
        self.commit("first")

    @property
    def common_dir(self) -> Path:
        return self.repo / ".git"

    def commit(self, message: str) -> str:
        git(self.repo, "add", "--all")
        git(self.repo, "commit", "-q", "--allow-empty", "-m", message)
        return self.head()

    def settings(self, text: str) -> Path:
        path = self.common_dir / "forge-actors" / "settings.toml"
        path.parent.mkdir(exist_ok=True, mode=0o700)
        path.write_text(text)
        return path

    # The contract's ground.

    def worktrees(self) -> GitWorktrees:
        return GitWorktrees()

    def wanted(self, job: str, **changes: Any) -> WorktreeWanted:
        values: dict[str, Any] = {
            "job": job,
            "repo": "repo",
            "common_dir": str(self.common_dir),
            "folder": f"{self.home}/worktrees/repo/{job}",
            "path": f"worktrees/repo/{job}",
            "ceiling": f"{self.home}/worktrees",
            "cwd": str(self.repo),
            "base": None,
            "pattern": None,
            "default_pattern": "forge/{job}",
            "names": BranchNames(job, "app", "name", "2026-01-31"),
            "seconds": 60.0,
        }
        return WorktreeWanted(**(values | changes))

    def head(self) -> str:
        return git(self.repo, "rev-parse", "HEAD")

    def branches(self) -> dict[str, str]:
        shown = "--format=%(refname:short) %(objectname)"
        lines = git(self.repo, "for-each-ref", shown, "refs/heads").splitlines()
        found = dict(line.split() for line in lines)
        del found["main"]
        return found

    def files(self, wanted: WorktreeWanted) -> set[str] | None:
        root = Path(wanted.folder)
        if not root.exists():
            return None
        paths = (path for path in root.rglob("*") if path.is_file())
        return {str(path.relative_to(root)) for path in paths} - {".git"}

    def make_branch(self, name: str) -> None:
        git(self.repo, "branch", name)

    def switch(self, wanted: WorktreeWanted, name: str) -> None:
        git(wanted.folder, "switch", "-q", "-c", name)

    def remove(self, wanted: WorktreeWanted) -> None:
        Path(wanted.folder).rename(self.home / "elsewhere")

    async def cut_off(self, wanted: WorktreeWanted, known: Worktree) -> None:
        done = await self.make_deadly(wanted, known, self._cut_at, self._when)
        assert done == -9, "it was not killed: there are fewer steps"

    async def make_deadly(
        self, wanted: WorktreeWanted, known: Worktree, nth: int, when: str
    ) -> int:
        """Make it in a process of its own that is killed at its nth git call, unless
        there are fewer; how that ended."""
        count, program = self.bin / "count", self.bin / "git"
        count.write_text("0")
        real = shutil.which("git")
        text = DEADLY_GIT.format(count=count, nth=nth, when=when, git=real)
        program.write_text(text)
        program.chmod(0o755)
        done = await trio.run_process(
            [
                sys.executable,
                *("-c", MAKER),
                *(msgspec.json.encode(each).decode() for each in (wanted, known)),
            ],
            env=os.environ | {"PATH": f"{self.bin}:{os.environ['PATH']}"},
            check=False,
        )
        return done.returncode


async def make(ground: GitGround, job: str = "job", **changes: Any) -> MadeWorktree:
    """Plan a worktree and make it."""
    worktrees, wanted = ground.worktrees(), ground.wanted(job, **changes)
    return await worktrees.make(wanted, await planned(worktrees, wanted))
