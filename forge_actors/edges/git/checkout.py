"""Which repository a folder belongs to, as git sees it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import trio

from forge_actors.domain.errors import InvalidInput, Unavailable
from forge_actors.domain.repositories import Checkout

#: Seconds one git command may take before it counts as hung.
GIT_SECONDS = 30.0


def clean_environment() -> dict[str, str]:
    """Our environment without what would make git look elsewhere or ask questions.

    A service started, or a job submitted, from inside a git hook inherits `GIT_DIR` and
    its kin, which would turn every call of ours to another repository.
    """
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_")
    }
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_SSH_COMMAND"):
        if name in os.environ:
            kept[name] = os.environ[name]
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


class GitProgram:
    """The port `Git` on the git program found on the PATH."""

    async def checkout(self, path: str) -> Checkout:
        folder = Path(path).expanduser().absolute()
        if not folder.exists():
            raise InvalidInput("path", f"{path} does not exist")
        if not folder.is_dir():
            raise InvalidInput("path", f"{path} is no folder")
        lines = await self._rev_parse(folder, path)
        if len(lines) < 3:
            raise InvalidInput(
                "path", f"{path} is a bare repository: add a work tree of it"
            )
        if len(lines) > 3:
            raise InvalidInput("path", f"{path!r} has a line break in its name")
        root, common, own = (os.path.realpath(folder / line) for line in lines)
        status = os.stat(common)
        return Checkout(root, common, status.st_dev, status.st_ino, common == own)

    async def clone(self, source: str, target: Path) -> None:
        """Clone a repository into a folder that does not exist yet.

        Raises:
            InvalidInput: git could not; its own words are given.
        """
        done = await self._run(
            "clone", "--quiet", "--", source, str(target), limit=None
        )
        if done.returncode != 0:
            raise InvalidInput("clone", f"{source}: {_last_line(done.stderr)}")

    async def _rev_parse(self, folder: Path, path: str) -> list[str]:
        done = await self._run(
            "-C",
            str(folder),
            "rev-parse",
            "--show-toplevel",
            "--git-common-dir",
            "--absolute-git-dir",
        )
        if done.returncode == 0:
            return os.fsdecode(done.stdout.removesuffix(b"\n")).split("\n")
        words = _last_line(done.stderr)
        if "must be run in a work tree" in words:
            return []
        if "dubious ownership" in os.fsdecode(done.stderr):
            raise InvalidInput(
                "path",
                f"{path} belongs to another user; if you trust it, run:"
                f" git config --global --add safe.directory {folder}",
            )
        raise InvalidInput("path", f"{path} is no git work tree: {words}")

    async def _run(
        self, *arguments: str, limit: float | None = GIT_SECONDS
    ) -> subprocess.CompletedProcess[bytes]:
        program = shutil.which("git")
        if program is None:
            raise Unavailable("git is not installed, or not on the PATH")
        seconds = float("inf") if limit is None else limit
        with trio.move_on_after(seconds):
            return await trio.run_process(
                [program, *arguments],
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                env=clean_environment(),
            )
        raise Unavailable(f"git {arguments[-1]} took longer than {seconds:.0f} s")


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].removeprefix("fatal: ") if lines else "git gave no reason"
